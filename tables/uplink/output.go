package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Output sends the packet.
//
// Packets to the outside leave by the gateway in loop mode. The host routes them, and they enter
// again by the host's own port. In direct mode they leave by the card, to the next hop's MAC
// address.
//
// Reads:  PodToExternalField, OutputRegField, TargetOFPortField.
// Writes: MAC addresses, in direct mode.
// Next:   nothing. Table-miss: drop.

func output(n *layout.Node) []layout.Entry {
	outside := of("W-20", "to the outside: the host routes it, and it enters again by its own port", layout.NewEntry(tableOutput, priorityHost,
		layout.Match(layout.IPv4, podToExternalRegMark.Is()), to(n.Gateway)))
	if direct(n) {
		outside = of("W-20", "to the outside: the switch knows the next hop", layout.NewEntry(tableOutput, priorityHost,
			layout.Match(layout.IPv4, podToExternalRegMark.Is()),
			layout.SetMAC(flow.EthSrc, n.Uplink.MAC), layout.SetMAC(flow.EthDst, n.Router), to(n.Uplink)))
	}
	return []layout.Entry{
		outside,
		of("W-22", "to the port that was found", layout.NewEntry(tableOutput, priorityNormal,
			layout.Match(layout.IPv4, outputToOFPortRegMark.Is()), flow.OutputReg{Src: targetOFPortField.Subfield})),
	}
}
