package agent

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Dumps that are explained: below each line, as comments that add-flows skips, the
// objects that want it. They cost a search for each line, and are made when they
// are asked for (explain=1).

// mostOrigins is how many origins stand below a line.
const mostOrigins = 8

// writeOrigins writes them below a line of a dump.
func writeOrigins(w io.Writer, all []OriginText) {
	for i, o := range all {
		if i == mostOrigins {
			fmt.Fprintf(w, "    # and %d more\n", len(all)-i)
			return
		}
		fmt.Fprintf(w, "    # %s\n", o)
	}
}

// writeMarks writes below an entry what it asks for and sets in registers and marks, by
// their names.
func writeMarks(w io.Writer, m tables.MarkNames, e *flow.Entry) {
	var parts []string
	if asks := m.Match(e.Table, &e.Match); len(asks) > 0 {
		parts = append(parts, "asks for "+strings.Join(asks, ", "))
	}
	if sets := m.Sets(e.Table, e.Actions); len(sets) > 0 {
		parts = append(parts, "sets "+strings.Join(sets, ", "))
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "    # %s\n", strings.Join(parts, "; "))
	}
}

// entryOrigins are those of an entry when a question wants them, else nil.
func (p *pipeline) entryOrigins(q query, e *flow.Entry) []OriginText {
	if !q.explain {
		return nil
	}
	return originTexts(p.objects.OriginsOf(e)...)
}

// idOrigins are those of a group or meter, likewise.
func idOrigins(q query, of func(uint32) (control.Origin, error), id uint32) []OriginText {
	if !q.explain {
		return nil
	}
	if o, err := of(id); err == nil {
		return originTexts(o)
	}
	return nil // it went meanwhile
}

func (p *pipeline) groupOrigins(q query, id uint32) []OriginText {
	return idOrigins(q, p.objects.ExplainGroup, id)
}

func (p *pipeline) meterOrigins(q query, id uint32) []OriginText {
	return idOrigins(q, p.objects.ExplainMeter, id)
}

// ConnectionObjects are the objects behind a connection.
type ConnectionObjects struct {
	From    string `json:"from,omitempty"`    // who began it
	To      string `json:"to,omitempty"`      // who serves it
	Service string `json:"service,omitempty"` // that was asked for
	// Judged are the rules that allowed it when it began, by direction; Gone those
	// whose rule is no more.
	Judged map[string]OriginText `json:"judged,omitempty"`
	Gone   map[string]uint32     `json:"gone,omitempty"`
}

// holders finds who has an address, once for each. It is for one question.
type holders struct {
	p     *pipeline
	known map[netip.Addr]control.Key
}

// holdersFor are those of a question; nil when it wants none.
func (p *pipeline) holdersFor(q query) *holders {
	if !q.explain {
		return nil
	}
	return &holders{p, map[netip.Addr]control.Key{}}
}

func (h *holders) of(a netip.Addr) control.Key {
	k, ok := h.known[a]
	if !ok {
		k = h.p.objects.PlaceOf(a).Object
		h.known[a] = k
	}
	return k
}

// text is who has an address, or the address.
func (h *holders) text(a netip.Addr) string {
	if k := h.of(a); k != (control.Key{}) {
		return k.String()
	}
	return a.String()
}

// behind are the objects behind a connection; nil when nobody asks.
func (h *holders) behind(c *conntrack.Conn) *ConnectionObjects {
	if h == nil {
		return nil
	}
	o := &ConnectionObjects{From: h.text(c.Orig.Src), To: h.text(c.Reply.Src)}
	if k := h.of(c.Orig.Dst); k.Kind == control.KindService {
		o.Service = k.String()
	}
	k := dataplane.MetaKey(&conntrack.Meta{Label: c.Label})
	for _, d := range []struct {
		direction tables.Direction
		rule      tables.Field
	}{{tables.Egress, tables.EgressRuleCTLabel}, {tables.Ingress, tables.IngressRuleCTLabel}} {
		if id := uint32(d.rule.Get(&k).Lo); id != 0 {
			o.judged(d.direction.String(), id, h.p.objects.RuleByID(id))
		}
	}
	return o
}

// judged notes a rule by its id; nil when it is no more.
func (o *ConnectionObjects) judged(direction string, id uint32, rule *control.RealisedRule) {
	if rule == nil {
		if o.Gone == nil {
			o.Gone = map[string]uint32{}
		}
		o.Gone[direction] = id
		return
	}
	if o.Judged == nil {
		o.Judged = map[string]OriginText{}
	}
	o.Judged[direction] = originTexts(rule.Origin())[0]
}

// write writes them below a connection's line.
func (o *ConnectionObjects) write(w io.Writer) {
	by := ""
	if o.Service != "" {
		by = " by " + o.Service
	}
	fmt.Fprintf(w, "    # from %s to %s%s\n", o.From, o.To, by)
	for _, d := range []tables.Direction{tables.Egress, tables.Ingress} {
		if rule, ok := o.Judged[d.String()]; ok {
			fmt.Fprintf(w, "    # %v: %s\n", d, rule)
		}
		if id, ok := o.Gone[d.String()]; ok {
			fmt.Fprintf(w, "    # %v: a rule that is no more (conjunction %d)\n", d, id)
		}
	}
}
