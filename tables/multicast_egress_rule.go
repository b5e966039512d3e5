package tables

import "github.com/antrail/antrail/flow"

// MulticastEgressRule asks the egress rules of Antrea-native policies whose peers are
// multicast groups. Other rules do not concern multicast, and Pods that are isolated may
// use it. It exists with Multicast and AntreaPolicy.
//
// Reads:  PktSourceField, the addresses, the transport header.
// Writes: APConjIDField, APDenyRegMark.
// Next:   MulticastRouting for membership reports. Table-miss, and what a rule decides:
// MulticastEgressMetric.

// reportsPass: no rule decides on a Pod's membership reports.
func (p *Pipeline) reportsPass() []*flow.Entry {
	if !hasMulticastPolicy(p) {
		return nil
	}
	return one(p.entry(forMulticast, tableMulticastEgressRule, priorityTopAntreaPolicy,
		match(igmp, FromPodRegMark.Is()), p.goTo(tableMulticastRouting)))
}

// igmp asks for a message of group management (RFC 3376).
func igmp(m *flow.Match) { IPv4.proto(protoIGMP)(m) }

// multicastActions are what a rule does with packets to groups: they have no connection
// that a verdict could be kept in.
func (p *Pipeline) multicastActions(r Rule) []*flow.Entry {
	actions := []flow.Action{APConjIDField.Set(uint64(r.ID))}
	if r.Action == Drop {
		actions = append(actions, APDenyRegMark.Set())
	}
	return p.conjEntry(r, append(actions, p.goTo(multicastTables[r.Direction].metric)), IPv4.ip())
}
