package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackCommit commits a new packet's connection with its translation.
//
// Reads:  ct_state, PodToExternal, PktSourceField.
// Writes: the source of packets from a pod to the outside; ConnMarkField.
// Next:   L2ForwardingOut, which is also the table-miss.

func conntrackCommit(n *layout.Node) []layout.Entry {
	begins := layout.CtState(layout.CtNew|layout.CtTrk, 0)
	snat := layout.Commit(ctZone, tableL2ForwardingOut, snatMark.Set())
	snat.NAT = &flow.NAT{Type: flow.NATSource, AddrMin: n.NodeIP, AddrMax: n.NodeIP, PortMin: firstSNATPort, PortMax: lastSNATPort}
	return []layout.Entry{
		literal("W-14", "a pod's connection to the outside gets the Node's address as its source", layout.NewEntry(tableConntrackCommit, priorityNormal,
			layout.Match(layout.IPv4, podToExternalMark.Is(), begins), snat)),
		written("W-24", "a connection by the gateway is a Service's", layout.NewEntry(tableConntrackCommit, priorityNormal,
			layout.Match(layout.IPv4, fromGatewayMark.Is(), begins), layout.Commit(ctZone, tableL2ForwardingOut, serviceMark.Set()))),
		linux("any other connection", layout.NewEntry(tableConntrackCommit, priorityLow,
			layout.Match(layout.IPv4, begins), layout.Commit(ctZone, tableL2ForwardingOut))),
		miss(tableConntrackCommit, tableL2ForwardingOut),
	}
}
