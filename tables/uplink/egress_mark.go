package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// EgressMark finds packets from a pod to the outside.
//
// A pod sends these to its gateway's MAC address, so broadcasts of pods stay here. The entry
// matches +new, which the document's does not. So replies of a pod to the outside keep the pod's
// address, and go back by the gateway.
//
// In direct mode the switch is the router and decrements the TTL. In loop mode the host does.
//
// Reads:  PktSourceField, ct_state, ct_mark, the destination.
// Writes: PodToExternalField.
// Next:   L3DecTTL in direct mode; L2ForwardingCalc, which is also the table-miss.

func egressMark(n *layout.Node) []layout.Entry {
	next := goTo(tableL2ForwardingCalc)
	if direct(n) {
		next = goTo(tableL3DecTTL)
	}

	toGateway := layout.EthAddr(flow.EthDst, n.Gateway.MAC)
	return []layout.Entry{
		of("W-13", "a pod to its Node", layout.NewEntry(tableEgressMark, priorityHigh,
			layout.Match(layout.IPv4, layout.Host(flow.IPDst, n.NodeIP)), goTo(tableL2ForwardingCalc))),
		of("W-18", "a pod goes on with a connection to the outside", layout.NewEntry(tableEgressMark, priorityNormal,
			layout.Match(layout.IPv4, layout.CtState(layout.CtTrk, layout.CtNew), snatCTMark.Is(), fromPodRegMark.Is(), toGateway), podToExternalRegMark.Set(), next)),
		of("W-12", "a pod begins a connection to the outside", layout.NewEntry(tableEgressMark, priorityLow,
			layout.Match(layout.IPv4, layout.CtState(layout.CtNew|layout.CtTrk, 0), fromPodRegMark.Is(), toGateway), podToExternalRegMark.Set(), next)),
		miss(tableEgressMark, tableL2ForwardingCalc),
	}
}
