package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L3Forwarding routes, and finds packets from a pod to the outside.
//
// All other destinations have entries: Services, the Node's address, pods here and elsewhere. The
// remaining packets go to the outside. Their entry has priority 0, so there is no table-miss
// entry.
//
// Like the document's, the entry for the outside does not match +new. So a pod's replies to the
// outside get the bit too, and leave by the gateway. They are not translated, because
// ConntrackCommit matches +new.
//
// Reads:  PktSourceField, ConnMarkField, the destination.
// Writes: PodToExternal; MAC addresses, the TTL and the tunnel's destination of routed packets.
// Next:   L2ForwardingCalculation, or IngressRule for the outside. Table-miss: drop.

func l3Forwarding(n *layout.Node) []layout.Entry {
	calculate := goTo(tableL2ForwardingCalculation)
	all := []layout.Entry{
		literal("W-13", "a pod's answers to a Service's connection, which came by the gateway", layout.NewEntry(tableL3Forwarding, priorityNormal,
			layout.Match(layout.IPv4, fromPodMark.Is(), serviceMark.Is()), calculate)),
		literal("W-13", "a pod to its Node", layout.NewEntry(tableL3Forwarding, priorityLow,
			layout.Match(layout.IPv4, fromPodMark.Is(), layout.Host(flow.IPDst, n.NodeIP)), calculate)),
		literal("W-13", "to pods of this Node", layout.NewEntry(tableL3Forwarding, priorityLow,
			layout.Match(layout.IPv4, layout.Net(flow.IPDst, n.PodCIDR)), calculate)),
		literal("W-12", "what is left of a pod's packets goes to the outside", layout.NewEntry(tableL3Forwarding, priorityMiss,
			layout.Match(fromPodMark.Is(), layout.IPv4), podToExternalMark.Set(), goTo(tableIngressRule))),
	}
	for _, p := range n.Pods {
		all = append(all, written("W-21", "what is to be routed to "+p.Port.Name, layout.NewEntry(tableL3Forwarding, priorityNormal,
			layout.Match(layout.IPv4, layout.EthAddr(flow.EthDst, virtualMAC), layout.Host(flow.IPDst, p.IP())),
			layout.SetMAC(flow.EthSrc, n.Gateway.MAC), layout.SetMAC(flow.EthDst, p.Port.MAC), flow.DecTTL{}, calculate)))
	}
	for _, p := range n.Peers {
		for i, cidr := range p.PodCIDRs {
			all = append(all, linux("to pods of another Node", layout.NewEntry(tableL3Forwarding, priorityNormal,
				layout.Match(layout.IPv4, layout.Net(flow.IPDst, cidr)),
				layout.SetMAC(flow.EthSrc, n.Gateway.MAC), layout.SetMAC(flow.EthDst, virtualMAC),
				flow.SetField{Field: flow.TunDst, Value: flow.ValueOfAddr(p.NodeIPs[min(i, len(p.NodeIPs)-1)]), Mask: flow.Ones(32)},
				flow.DecTTL{}, calculate)))
		}
	}
	return all
}
