package pipeline

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/flow"
)

// Explain accepts one of these:
//
//   - a cookie (explaincookie.go)
//   - an object as KIND/NAMESPACE/NAME, or KIND/NAME for kinds without namespaces
//   - a group, a meter or an entry as a dump prints it

// objectKinds are the kinds of objects that explain accepts.
var objectKinds = []cluster.Kind{
	cluster.KindNodeConfig, cluster.KindNode, cluster.KindPod, cluster.KindExternalEntity, cluster.KindService, cluster.KindNetworkPolicy,
	cluster.KindClusterNetworkPolicy, cluster.KindAntreaNetworkPolicy, cluster.KindEgress, cluster.KindTrafficControl,
}

// numberLine matches the line of a group or a meter in a dump, or its beginning.
var numberLine = regexp.MustCompile(`^\s*(group_id|meter)=(\d+)\b`)

// dumpTimes matches the parts of a dumped line that are counters and times.
var dumpTimes = regexp.MustCompile(`\b(duration|n_packets|n_bytes|idle_age|hard_age)=[^,\s]*,? ?`)

// Explain returns an *ObjectEntries or a []Explained.
func (p *Pipeline) Explain(what string) (any, error) {
	if all, is, err := p.explainCookie(what); is {
		return all, err
	}
	if p.rows.Load() != nil && strings.ContainsAny(what, "=,") {
		return p.explainRow(dumpTimes.ReplaceAllString(what, ""))
	}
	if p.byCookie() && strings.ContainsAny(what, "=,") && !numberLine.MatchString(what) {
		return p.explainInstalled(dumpTimes.ReplaceAllString(what, ""))
	}
	if p.Objects == nil {
		return nil, p.noObjects()
	}
	if g := numberLine.FindStringSubmatch(what); g != nil {
		return p.explainNumber(g[1], g[2])
	}
	if k, ok, err := ParseKey(what); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return p.explainObject(k)
	}
	if !strings.ContainsAny(what, "=,") {
		return nil, fmt.Errorf("%q: want a line of a dump, a cookie, or an object: KIND/NAME or KIND/NAMESPACE/NAME", what)
	}
	all, err := p.Objects.ExplainLine(dumpTimes.ReplaceAllString(what, ""))
	return p.explained(all), err
}

// explainNumber explains a group or a meter.
func (p *Pipeline) explainNumber(kind, number string) (any, error) {
	id, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return nil, err
	}
	x, of := api.Explained{Group: uint32(id)}, p.Objects.ExplainGroup
	if kind == "meter" {
		x, of = api.Explained{Meter: uint32(id)}, p.Objects.ExplainMeter
	}
	o, err := of(uint32(id))
	x.Origins = OriginTexts(o)
	return []api.Explained{x}, err
}

func (p *Pipeline) explainObject(k cluster.Key) (any, error) {
	status, ok := p.Objects.Status(k)
	for _, s := range p.RefusedObjects(KindIs(k.Kind)) {
		if s.Object == k {
			status, ok = s, true
		}
	}
	if !ok {
		var there []string
		for _, s := range p.Objects.Statuses() {
			if o := s.Object; o.Kind == k.Kind && o.Namespace == k.Namespace {
				there = append(there, o.Name)
			}
		}
		return nil, fmt.Errorf("%s does not concern this Node%s", k, flow.Suggest(k.Name, there))
	}
	o := &api.ObjectEntries{
		Object: k.String(), State: status.State, Reason: status.Reason, EditRefused: status.EditRefused, Entries: p.explained(p.Objects.EntriesOf(k)),
	}
	groups, meters := p.Objects.NumbersOf(k)
	for _, g := range p.Switch.Groups() {
		if slices.Contains(groups, g.ID) {
			o.Groups = append(o.Groups, strings.TrimSpace(g.Text(p.Switch.Names())))
		}
	}
	for _, m := range p.Switch.Meters() {
		if slices.Contains(meters, m.ID) {
			o.Meters = append(o.Meters, m.Text())
		}
	}
	return o, nil
}

// ParseKey parses KIND/NAME or KIND/NAMESPACE/NAME, the kind in any case. ok says that the text
// has this form.
func ParseKey(text string) (k cluster.Key, ok bool, err error) {
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

func (p *Pipeline) explained(all []control.Explanation) []api.Explained {
	records := []api.Explained{}
	for _, x := range all {
		text := strings.TrimSpace(x.Entry.Text(flow.Format{Names: p.Switch.Names()}))
		records = append(records, api.Explained{Entry: text, Origins: OriginTexts(x.Origins...)})
	}
	return records
}

// OriginTexts converts origins for clients; never nil.
func OriginTexts(all ...ledger.Origin) []api.OriginText {
	texts := []api.OriginText{}
	for _, o := range all {
		texts = append(texts, api.OriginText{Object: o.Object.String(), Field: o.Field, Rule: o.Rule})
	}
	return texts
}
