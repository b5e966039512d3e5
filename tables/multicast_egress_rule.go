package tables

import "github.com/antrail/antrail/flow"

// MulticastEgressRule holds the egress rules of Antrea-native policies whose peers are multicast
// groups. Other rules do not concern multicast, and isolated Pods may use it. It exists with
// Multicast and AntreaPolicy.
//
// Reads:  PktSourceField, the addresses, the transport header.
// Writes: APConjIDField, APDenyRegMark.
// Next:   MulticastRouting for membership reports. Table-miss, and once decided:
// MulticastEgressMetric.

// reportsPass: no rule decides on a Pod's membership reports.
func (p *Pipeline) reportsPass() []*flow.Entry {
	if !hasMulticastPolicy(p) {
		return nil
	}
	return one(p.entry(forMulticast, tableMulticastEgressRule, priorityTopAntreaPolicy,
		match(igmp, FromPodRegMark.Is()), p.goTo(tableMulticastRouting)))
}

// igmp matches a message of group management (RFC 3376).
func igmp(m *flow.Match) { IPv4.proto(protoIGMP)(m) }

// multicastActions are the entries that carry out a rule for packets to groups. They commit
// nothing, because these packets have no connection.
func (p *Pipeline) multicastActions(r Rule) []*flow.Entry {
	actions := []flow.Action{APConjIDField.Set(uint64(r.ID))}
	if r.Action == Drop {
		actions = append(actions, APDenyRegMark.Set())
	}
	return p.conjEntry(r, append(actions, p.goTo(multicastTables[r.Direction].metric)), IPv4.ip())
}
