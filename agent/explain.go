package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/flow"
)

// Explaining: what is asked for is an object as KIND/NAMESPACE/NAME (KIND/NAME
// for those without namespace), a group or a meter as it stands in a dump, or else
// an entry as it stands in a dump.

// Explained is an entry, a group or a meter, and what wants it.
type Explained struct {
	Entry   string       `json:"entry,omitempty"` // as dump-flows --names prints it, without counters
	Group   uint32       `json:"group,omitempty"`
	Meter   uint32       `json:"meter,omitempty"`
	Origins []OriginText `json:"origins"`
}

// OriginText is an object and the place in it that asks for an entry.
type OriginText struct {
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	Rule   string `json:"rule,omitempty"`
}

// ObjectEntries is an object, and what of the switch it wants.
type ObjectEntries struct {
	Object string        `json:"object"`
	State  control.State `json:"state"`
	Reason string        `json:"reason,omitempty"`
	// EditRefused is as in control.Status.
	EditRefused string      `json:"editRefused,omitempty"`
	Entries     []Explained `json:"entries"`
	Groups      []string    `json:"groups,omitempty"` // as dump-groups --names prints them
	Meters      []string    `json:"meters,omitempty"`
}

// objectKinds are the kinds that an object may be asked for by.
var objectKinds = []control.Kind{
	control.KindNodeConfig, control.KindNode, control.KindPod, control.KindService, control.KindNetworkPolicy,
	control.KindClusterNetworkPolicy, control.KindAntreaNetworkPolicy, control.KindEgress, control.KindTrafficControl,
}

// numberLine is the line of a group or a meter in a dump, or the beginning of one.
var numberLine = regexp.MustCompile(`^\s*(group_id|meter)=(\d+)\b`)

// dumpTimes are the parts of a dumped line that are about its past.
var dumpTimes = regexp.MustCompile(`\b(duration|n_packets|n_bytes|idle_age|hard_age)=[^,\s]*,? ?`)

func (p *pipeline) answerExplain(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	var v any
	if err == nil {
		v, err = p.explain(strings.TrimSpace(r.URL.Query().Get("what")))
	}
	if err != nil || q.json {
		writeJSON(w, v, err)
		return
	}
	var b bytes.Buffer
	writeExplained(&b, v)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(b.Bytes())
}

// explain answers with an *ObjectEntries or a []Explained.
func (p *pipeline) explain(what string) (any, error) {
	if p.objects == nil {
		return nil, errNoObjects
	}
	if g := numberLine.FindStringSubmatch(what); g != nil {
		return p.explainNumber(g[1], g[2])
	}
	if k, ok, err := parseKey(what); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return p.explainObject(k)
	}
	if !strings.ContainsAny(what, "=,") {
		return nil, fmt.Errorf("%q is neither a line of a dump nor an object: KIND/NAME, or KIND/NAMESPACE/NAME", what)
	}
	all, err := p.objects.ExplainLine(dumpTimes.ReplaceAllString(what, ""))
	return p.explained(all), err
}

// explainNumber explains a group or a meter.
func (p *pipeline) explainNumber(kind, number string) (any, error) {
	id, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return nil, err
	}
	x, of := Explained{Group: uint32(id)}, p.objects.ExplainGroup
	if kind == "meter" {
		x, of = Explained{Meter: uint32(id)}, p.objects.ExplainMeter
	}
	o, err := of(uint32(id))
	x.Origins = originTexts(o)
	return []Explained{x}, err
}

func (p *pipeline) explainObject(k control.Key) (any, error) {
	status, ok := p.objects.Status(k)
	for _, s := range p.refusedObjects(kindIs(k.Kind)) {
		if s.Object == k {
			status, ok = s, true
		}
	}
	if !ok {
		var there []string
		for _, s := range p.objects.Statuses() {
			if o := s.Object; o.Kind == k.Kind && o.Namespace == k.Namespace {
				there = append(there, o.Name)
			}
		}
		return nil, fmt.Errorf("this Node has nothing to do with %s%s", k, flow.Suggest(k.Name, there))
	}
	o := &ObjectEntries{
		Object: k.String(), State: status.State, Reason: status.Reason, EditRefused: status.EditRefused, Entries: p.explained(p.objects.EntriesOf(k)),
	}
	groups, meters := p.objects.NumbersOf(k)
	for _, g := range p.sw.Groups() {
		if slices.Contains(groups, g.ID) {
			o.Groups = append(o.Groups, strings.TrimSpace(g.Text(p.sw.Names())))
		}
	}
	for _, m := range p.sw.Meters() {
		if slices.Contains(meters, m.ID) {
			o.Meters = append(o.Meters, m.Text())
		}
	}
	return o, nil
}

// parseKey reads KIND/NAME or KIND/NAMESPACE/NAME, the kind in any case. ok
// says that the text has this form.
func parseKey(text string) (k control.Key, ok bool, err error) {
	kind, rest, ok := strings.Cut(text, "/")
	if !ok || strings.ContainsAny(kind, "=, ") {
		return k, false, nil
	}
	for _, known := range objectKinds {
		if strings.EqualFold(kind, string(known)) {
			k.Kind = known
		}
	}
	if k.Kind == "" {
		return k, true, fmt.Errorf("there is no kind %q; there are: %v", kind, objectKinds)
	}
	k.Name = rest
	if namespace, name, two := strings.Cut(rest, "/"); two {
		k.Namespace, k.Name = namespace, name
	}
	if k.Name == "" || strings.Contains(k.Name, "/") {
		return k, true, errors.New("an object is KIND/NAME or KIND/NAMESPACE/NAME")
	}
	return k, true, nil
}

func (p *pipeline) explained(all []control.Explanation) []Explained {
	records := []Explained{}
	for _, x := range all {
		text := strings.TrimSpace(x.Entry.Text(flow.Format{Names: p.sw.Names()}))
		records = append(records, Explained{Entry: text, Origins: originTexts(x.Origins...)})
	}
	return records
}

func originTexts(all ...control.Origin) []OriginText {
	texts := []OriginText{}
	for _, o := range all {
		texts = append(texts, OriginText{o.Object.String(), o.Field, o.Rule})
	}
	return texts
}

// String is the object, and the place in it.
func (o OriginText) String() string {
	s := strings.TrimSpace(o.Object + " " + o.Field)
	if o.Rule != "" {
		s += fmt.Sprintf(" (%s)", o.Rule)
	}
	return s
}

// writeExplained prints what explain answers: each entry, and below it what
// wants it.
func writeExplained(w io.Writer, v any) {
	entries, _ := v.([]Explained)
	if o, ok := v.(*ObjectEntries); ok {
		fmt.Fprintf(w, "%s: %s, %d entries\n", o.Object, state(control.Status{State: o.State, Reason: o.Reason, EditRefused: o.EditRefused}), len(o.Entries))
		for _, line := range slices.Concat(o.Groups, o.Meters) {
			fmt.Fprintln(w, line)
		}
		entries = o.Entries
	}
	for _, e := range entries {
		switch {
		case e.Entry != "":
			fmt.Fprintln(w, e.Entry)
		case e.Meter != 0:
			fmt.Fprintf(w, "meter=%d\n", e.Meter)
		default:
			fmt.Fprintf(w, "group_id=%d\n", e.Group)
		}
		for _, o := range e.Origins {
			fmt.Fprintf(w, "    %s\n", o)
		}
	}
}
