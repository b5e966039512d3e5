package uplink

import (
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// EgressRule checks new connections from a pod with rules of its own. EndpointDNAT comes before,
// so the rules name endpoints.
//
// Reads:  ct_state, PktSourceField, the addresses, the protocol, the destination port.
// Writes: nothing.
// Next:   L3Forwarding, which is also the table-miss.

func egressRule(n *layout.Node) []layout.Entry {
	var all []layout.Entry
	for _, p := range n.Policies {
		if p.Egress == nil {
			continue
		}
		own := []layout.Term{layout.IPv4, layout.CtState(layout.CtNew|layout.CtTrk, 0), fromPodRegMark.Is(), layout.Host(flow.IPSrc, p.Pod)}
		all = append(all, ruleEntries(tableEgressRule, tableL3Forwarding, own, flow.IPDst, p.Egress)...)
	}
	return append(all, miss(tableEgressRule, tableL3Forwarding))
}

// checkedEgress is the table after EndpointDNAT: this one if any pod has rules.
func checkedEgress(n *layout.Node) uint8 {
	if slices.ContainsFunc(n.Policies, func(p layout.Policy) bool { return p.Egress != nil }) {
		return tableEgressRule
	}
	return tableL3Forwarding
}

// ruleEntries pass a pod's new connections that its rules allow, and drop the others. far is the
// field of the other end's address.
func ruleEntries(table, next uint8, own []layout.Term, far flow.FieldID, rules *[]layout.Rule) (all []layout.Entry) {
	seen := map[layout.Rule]bool{}
	for _, r := range *rules {
		if seen[r] {
			continue
		}
		seen[r] = true
		terms := append([]layout.Term{}, own...)
		if r.Proto != 0 {
			terms = append(terms, layout.Exact(flow.IPProto, uint64(r.Proto)))
		}
		if r.Port != 0 {
			terms = append(terms, layout.Exact(destinationPort(r.Proto), uint64(r.Port)))
		}
		if r.Other.IsValid() {
			terms = append(terms, layout.Net(far, r.Other))
		}
		all = append(all, of("W-22", "a rule allows it", layout.NewEntry(table, priorityNormal, layout.Match(terms...), goTo(next))))
	}
	return append(all, of("W-22", "no rule allows it", layout.NewEntry(table, priorityLow, layout.Match(own...))))
}

// destinationPort is the field of a protocol's port.
func destinationPort(proto uint8) flow.FieldID {
	if proto == protoUDP {
		return flow.UDPDst
	}
	return flow.TCPDst
}
