package tables

import "github.com/antrail/antrail/flow"

// MulticastEgressMetric counts packets to multicast groups by the rule that decided on them, and
// drops denied ones. It exists with Multicast and AntreaPolicy.
//
// Reads:  APConjIDField, APDenyRegMark.
// Writes: nothing.
// Next:   MulticastEgressPodMetric, also by the table-miss. A denied packet has no next table.

// multicastMetric counts what a rule allows, or drops what it denies.
func (p *Pipeline) multicastMetric(r Rule) []*flow.Entry {
	at := multicastTables[r.Direction].metric
	rule := APConjIDField.Is(uint64(r.ID))
	if r.Action == Drop {
		return one(p.entry(forPolicies, at, priorityNormal, match(APDenyRegMark.Is(), rule)))
	}
	return one(p.entry(forPolicies, at, priorityNormal, match(rule), p.goNext(at)))
}
