package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L3DecTTL decrements the TTL of packets that the switch routes. The host has decremented that of
// packets from the gateway.
//
// Reads:  PktSourceField.
// Writes: the TTL.
// Next:   L2ForwardingCalc. Table-miss: drop.

func l3DecTTL() []layout.Entry {
	return []layout.Entry{
		of("W-22", "the host has routed it already", layout.NewEntry(tableL3DecTTL, priorityHigh,
			layout.Match(layout.IPv4, fromGatewayRegMark.Is()), goTo(tableL2ForwardingCalc))),
		of("W-22", "the switch has routed it", layout.NewEntry(tableL3DecTTL, priorityNormal, layout.Match(layout.IPv4),
			flow.DecTTL{}, goTo(tableL2ForwardingCalc))),
	}
}
