package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ConntrackState separates replies to pods from the host's own packets.
//
// The entry of the host's packets has a higher priority than the one that drops +inv. So
// connections that the host began before the switch started continue.
//
// In mode shared the switch gets copies of ICMP. It drops those that answer no pod, because the
// host has them too.
//
// A reply is always +rpl. So a packet from the card in a pod's original direction has forged
// addresses. The document does not check this.
//
// Reads:  ct_state, ct_mark, PktSourceField.
// Writes: RewriteMACField.
// Next:   L3Forwarding for known connections. EndpointDNAT for new ones, and by the table-miss.
// For the host's packets the bridge port, or the gateway where there is none.

func conntrackState(n *layout.Node) []layout.Entry {
	known := layout.CtState(layout.CtTrk, layout.CtNew)
	var all []layout.Entry
	if shared(n) {
		all = append(all, of("W-11", "the host has its own copy of it", layout.NewEntry(tableConntrackState, priorityCopy,
			layout.Match(layout.IPv4, layout.Exact(flow.IPProto, protoICMP), fromUplinkRegMark.Is()))))
	}
	return append(all,
		of("W-17", "an answer from outside to a pod is routed to it", layout.NewEntry(tableConntrackState, priorityHigh,
			layout.Match(layout.CtState(layout.CtTrk|layout.CtRpl, layout.CtNew), snatCTMark.Is(), layout.IPv4, fromUplinkRegMark.Is()),
			rewriteMACRegMark.Set(), goTo(tableL3Forwarding))),
		of("W-17", "nobody outside sends with a pod's addresses", layout.NewEntry(tableConntrackState, priorityHigh,
			layout.Match(layout.CtState(layout.CtTrk, layout.CtNew|layout.CtRpl), snatCTMark.Is(), layout.IPv4, fromUplinkRegMark.Is()))),
		of("W-11", "all else from the card is the host's", layout.NewEntry(tableConntrackState, priorityHost,
			layout.Match(layout.IPv4, fromUplinkRegMark.Is()), toHost(n)...)),
		of("W-22", "a packet that fits no connection", layout.NewEntry(tableConntrackState, priorityNormal,
			layout.Match(layout.CtState(layout.CtInv|layout.CtTrk, 0), layout.IPv4))),
		of("W-18", "a pod goes on with a connection to the outside", layout.NewEntry(tableConntrackState, priorityLow,
			layout.Match(known, snatCTMark.Is(), layout.IPv4), goTo(tableL3Forwarding))),
		of("W-23", "a connection to a ClusterIP goes on to its endpoint", layout.NewEntry(tableConntrackState, priorityLow,
			layout.Match(known, serviceCTMark.Is(), layout.IPv4), rewriteMACRegMark.Set(), goTo(tableL3Forwarding))),
		miss(tableConntrackState, tableEndpointDNAT),
	)
}
