package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L2ForwardingOut sends the packet.
//
// Packets to the outside leave by the gateway. The host routes them, writes the MAC address of
// the next hop, and sends them by the bridge. So they enter a second time, and Classifier outputs
// them to the card.
//
// Reads:  PodToExternal, PortFound, TargetOFPortField.
// Writes: nothing.
// Next:   nothing. Table-miss: drop.

func l2ForwardingOut(n *layout.Node) []layout.Entry {
	return []layout.Entry{
		literal("W-20", "to the outside: the host routes it, and it enters again by the bridge", layout.NewEntry(tableL2ForwardingOut, priorityNormal,
			layout.Match(layout.IPv4, podToExternalMark.Is()), output(n.Gateway))),
		linux("to the port that was found", layout.NewEntry(tableL2ForwardingOut, priorityNormal,
			layout.Match(layout.IPv4, portFoundMark.Is()), flow.OutputReg{Src: targetOFPortField.Subfield})),
	}
}
