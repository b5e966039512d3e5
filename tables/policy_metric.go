package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// The entries of EgressMetric and IngressMetric. An allowing rule has two for
// each family: one counts connections (+new), one their later packets. A denying
// rule has one, which drops. A rule that passes has none.

func (p *Pipeline) metrics(r Rule) []*flow.Entry {
	if r.Kind == MulticastPolicy {
		return p.multicastMetric(r)
	}
	switch r.Action {
	case Drop, Reject:
		return []*flow.Entry{p.deniedMetric(r)}
	case Pass:
		return nil
	}
	var all []*flow.Entry
	for _, f := range p.familiesOf(r) {
		all = append(all, p.allowedMetric(r, f, layout.CtState(layout.CtNew, 0)), p.allowedMetric(r, f, layout.CtState(0, layout.CtNew)))
	}
	return all
}

func (p *Pipeline) allowedMetric(r Rule, f Family, state term) *flow.Entry {
	s := sides[r.Direction]
	return p.entry(forPolicies, s.metric, priorityNormal,
		match(f.ip(), state, s.label.Is(uint64(r.ID))), p.goNext(s.metric))
}

func (p *Pipeline) deniedMetric(r Rule) *flow.Entry {
	return p.entry(forPolicies, sides[r.Direction].metric, priorityNormal,
		match(APDenyRegMark.Is(), APConjIDField.Is(uint64(r.ID))))
}
