package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackCommit commits a new packet's connection with its translation.
//
// If all ports of the range have a connection to the same destination, the packet is dropped with
// the reason ct_nat_exhausted.
//
// Reads:  ct_state, PodToExternalField, ServiceCTMarkField.
// Writes: the source of packets from a pod to the outside; SNATCTMarkField.
// Next:   Output, which is also the table-miss.

func conntrackCommit(n *layout.Node) []layout.Entry {
	begins := layout.CtState(layout.CtNew|layout.CtTrk, 0)
	snat := layout.Commit(ctZone, tableOutput, snatCTMark.Set())
	snat.NAT = &flow.NAT{Type: flow.NATSource, AddrMin: n.NodeIP, AddrMax: n.NodeIP, PortMin: FirstSNATPort, PortMax: LastSNATPort}
	return []layout.Entry{
		of("W-14", "a pod's connection to the outside gets the Node's address as its source", layout.NewEntry(tableConntrackCommit, priorityHigh,
			layout.Match(layout.IPv4, podToExternalRegMark.Is(), begins), snat)),
		of("W-22", "any other connection but a Service's, which EndpointDNAT commits", layout.NewEntry(tableConntrackCommit, priorityNormal,
			layout.Match(layout.IPv4, begins, notServiceCTMark.Is()), layout.Commit(ctZone, tableOutput))),
		miss(tableConntrackCommit, tableOutput),
	}
}
