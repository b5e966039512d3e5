package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackState separates replies to pods from the host's own packets.
//
// A reply from the card was addressed to the Node, and its destination MAC address is the host's.
// This table writes the Global Virtual MAC, so that L3Forwarding routes the reply to the pod.
//
// The entry of the host's packets has a higher priority than the one that drops invalid packets.
// So connections that the host began before the switch started continue.
//
// Reads:  ct_state, ConnMarkField, PktSourceField, in_port.
// Writes: the destination MAC address.
// Next:   DNAT, which is also the table-miss; the bridge for the host's packets.

func conntrackState(n *layout.Node) []layout.Entry {
	known := layout.CtState(layout.CtTrk, layout.CtNew)
	return []layout.Entry{
		literal("W-17", "an answer from outside to a pod: the Global Virtual MAC has it routed", layout.NewEntry(tableConntrackState, priorityHigh,
			layout.Match(known, snatMark.Is(), layout.IPv4, fromUplinkMark.Is()), layout.SetMAC(flow.EthDst, virtualMAC), goTo(tableDNAT))),
		literal("W-18", "a pod goes on with a connection to the outside", layout.NewEntry(tableConntrackState, priorityNormal,
			layout.Match(known, snatMark.Is(), layout.IPv4), goTo(tableDNAT))),
		literal("W-11", "all else from the card is the host's", layout.NewEntry(tableConntrackState, priorityNormal,
			layout.Match(layout.InPort(n.Uplink), layout.IPv4), output(n.Bridge))),
		linux("a packet that fits no connection", layout.NewEntry(tableConntrackState, priorityLow,
			layout.Match(layout.CtState(layout.CtInv|layout.CtTrk, 0), layout.IPv4))),
		written("W-23", "a connection to a ClusterIP goes on to its endpoint", layout.NewEntry(tableConntrackState, priorityLow,
			layout.Match(known, clusterIPMark.Is(), layout.IPv4), layout.SetMAC(flow.EthDst, virtualMAC), goTo(tableDNAT))),
		miss(tableConntrackState, tableDNAT),
	}
}
