package answer

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/layout"
)

// Explained dumps have the objects behind each line below it, as comments that add-flows skips.
// They cost a search for each line, so they are made only on request (explain=1).

// mostOrigins bounds the origins below a line.
const mostOrigins = 8

// writeOrigins writes origins below a line of a dump.
func writeOrigins(w io.Writer, all []api.OriginText) {
	for i, o := range all {
		if i == mostOrigins {
			fmt.Fprintf(w, "    # and %d more\n", len(all)-i)
			return
		}
		fmt.Fprintf(w, "    # %s\n", o)
	}
}

// writeMarks writes below an entry the registers and marks that it matches and sets, by their
// names.
func writeMarks(w io.Writer, m layout.MarkNames, e *flow.Entry) {
	var parts []string
	if asks := m.Match(e.Table, e.Match); len(asks) > 0 {
		parts = append(parts, "matches "+strings.Join(asks, ", "))
	}
	if sets := m.Sets(e.Table, e.Actions); len(sets) > 0 {
		parts = append(parts, "sets "+strings.Join(sets, ", "))
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "    # %s\n", strings.Join(parts, "; "))
	}
}

// entryOrigins are the origins of an entry if the query asks for them, otherwise nil.
func (p *Answers) entryOrigins(q query, e *flow.Entry) []api.OriginText {
	if !q.explain {
		return nil
	}
	return p.OriginsOf(e)
}

// idOrigins are the origins of a group or meter if the query asks for them.
func idOrigins(q query, of func(uint32) (ledger.Origin, error), id uint32) []api.OriginText {
	if !q.explain {
		return nil
	}
	if o, err := of(id); err == nil {
		return pipeline.OriginTexts(o)
	}
	return nil // removed meanwhile
}

func (p *Answers) groupOrigins(q query, id uint32) []api.OriginText {
	return idOrigins(q, p.Objects.ExplainGroup, id)
}

func (p *Answers) meterOrigins(q query, id uint32) []api.OriginText {
	return idOrigins(q, p.Objects.ExplainMeter, id)
}

// holders finds the objects of addresses, once for each address. It is for one request.
type holders struct {
	p     *Answers
	known map[netip.Addr]cluster.Key
}

// holdersFor makes the holders of a request; nil if the request does not ask for objects.
func (p *Answers) holdersFor(q query) *holders {
	if !q.explain {
		return nil
	}
	return &holders{p, map[netip.Addr]cluster.Key{}}
}

func (h *holders) of(a netip.Addr) cluster.Key {
	k, ok := h.known[a]
	if !ok {
		k = h.p.Objects.PlaceOf(a).Object
		h.known[a] = k
	}
	return k
}

// text is the object with an address, or the address.
func (h *holders) text(a netip.Addr) string {
	if k := h.of(a); k != (cluster.Key{}) {
		return k.String()
	}
	return a.String()
}

// behind are the objects behind a connection; nil if the request does not ask for them.
func (h *holders) behind(c *conntrack.Conn) *api.ConnectionObjects {
	if h == nil {
		return nil
	}
	o := &api.ConnectionObjects{From: h.text(c.Orig.Src), To: h.text(c.Reply.Src)}
	if k := h.of(c.Orig.Dst); k.Kind == cluster.KindService {
		o.Service = k.String()
	}
	k := telemetry.MetaKey(&conntrack.Meta{Label: c.Label})
	for _, d := range []struct {
		direction tables.Direction
		rule      tables.Field
	}{{tables.Egress, tables.EgressRuleCTLabel}, {tables.Ingress, tables.IngressRuleCTLabel}} {
		if id := uint32(d.rule.Get(&k).Lo); id != 0 {
			decidingRule(o, d.direction.String(), id, h.p.Objects.RuleByID(id))
		}
	}
	return o
}

// decidingRule adds the rule with an id to a connection's objects. rule is nil if the rule is
// gone.
func decidingRule(o *api.ConnectionObjects, direction string, id uint32, rule *policy.RealisedRule) {
	if rule == nil {
		if o.Gone == nil {
			o.Gone = map[string]uint32{}
		}
		o.Gone[direction] = id
		return
	}
	if o.DecidedBy == nil {
		o.DecidedBy = map[string]api.OriginText{}
	}
	o.DecidedBy[direction] = pipeline.OriginTexts(rule.Origin())[0]
}

// writeConnectionObjects writes the objects below a connection's line.
func writeConnectionObjects(o *api.ConnectionObjects, w io.Writer) {
	by := ""
	if o.Service != "" {
		by = " by " + o.Service
	}
	fmt.Fprintf(w, "    # from %s to %s%s\n", o.From, o.To, by)
	for _, d := range []tables.Direction{tables.Egress, tables.Ingress} {
		if rule, ok := o.DecidedBy[d.String()]; ok {
			fmt.Fprintf(w, "    # %v: %s\n", d, rule)
		}
		if id, ok := o.Gone[d.String()]; ok {
			fmt.Fprintf(w, "    # %v: a removed rule (conjunction %d)\n", d, id)
		}
	}
}
