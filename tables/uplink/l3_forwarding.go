package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L3Forwarding routes to pods of this Node and of others. EgressMark separates the other
// destinations: the Node or the outside.
//
// Reads:  RewriteMACField, the destination.
// Writes: MAC addresses, the tunnel's destination.
// Next:   L3DecTTL for routed packets, L2ForwardingCalc for switched ones. EgressMark is the
// table-miss.

func l3Forwarding(n *layout.Node) []layout.Entry {
	entry := func(row, why string, priority uint16, m flow.Match, actions ...flow.Action) layout.Entry {
		return of(row, why, layout.NewEntry(tableL3Forwarding, priority, m, actions...))
	}
	all := []layout.Entry{entry("W-13", "to pods of this Node", priorityLow,
		layout.Match(layout.IPv4, notRewriteMACRegMark.Is(), layout.Net(flow.IPDst, n.PodCIDR)), goTo(tableL2ForwardingCalc))}
	for _, p := range n.Pods {
		all = append(all, entry("W-21", "what is to be routed to "+p.Port.Name, priorityNormal,
			layout.Match(layout.IPv4, rewriteMACRegMark.Is(), layout.Host(flow.IPDst, p.IP())),
			layout.SetMAC(flow.EthSrc, n.Gateway.MAC), layout.SetMAC(flow.EthDst, p.Port.MAC), goTo(tableL3DecTTL)))
	}
	for _, p := range n.Peers {
		for i, cidr := range p.PodCIDRs {
			all = append(all, entry("W-22", "to pods of another Node", priorityNormal, layout.Match(layout.IPv4, layout.Net(flow.IPDst, cidr)),
				layout.SetMAC(flow.EthSrc, n.Gateway.MAC), layout.SetMAC(flow.EthDst, virtualMAC),
				flow.SetField{Field: flow.TunDst, Value: flow.ValueOfAddr(p.NodeIPs[min(i, len(p.NodeIPs)-1)]), Mask: flow.Ones(32)},
				goTo(tableL3DecTTL)))
		}
	}
	return append(all, miss(tableL3Forwarding, tableEgressMark))
}
