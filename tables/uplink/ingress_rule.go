package uplink

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// IngressRule checks new connections to a pod with rules of its own. The Node itself may reach its pods,
// as in Kubernetes.
//
// Reads:  ct_state, PktSourceField, the addresses, the protocol, the destination port.
// Writes: nothing.
// Next:   ConntrackCommit, which is also the table-miss.

func ingressRule(n *layout.Node) []layout.Entry {
	var all []layout.Entry
	for _, p := range n.Policies {
		if p.Ingress == nil {
			continue
		}
		own := []layout.Term{layout.IPv4, layout.CtState(layout.CtNew|layout.CtTrk, 0), layout.Host(flow.IPDst, p.Pod)}
		for _, node := range []netip.Addr{n.GatewayIP, n.NodeIP} {
			terms := append([]layout.Term{fromGatewayRegMark.Is(), layout.Host(flow.IPSrc, node)}, own...)
			all = append(all, of("W-22", "the Node to its pod", layout.NewEntry(tableIngressRule, priorityHigh, layout.Match(terms...), goTo(tableConntrackCommit))))
		}
		all = append(all, ruleEntries(tableIngressRule, tableConntrackCommit, own, flow.IPSrc, p.Ingress)...)
	}
	return append(all, miss(tableIngressRule, tableConntrackCommit))
}

// checkedIngress is the table before ConntrackCommit: this one if any pod has rules.
func checkedIngress(n *layout.Node) uint8 {
	if slices.ContainsFunc(n.Policies, func(p layout.Policy) bool { return p.Ingress != nil }) {
		return tableIngressRule
	}
	return tableConntrackCommit
}
