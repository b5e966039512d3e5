package tables

import "github.com/antrail/antrail/flow"

// MulticastOutput sends a copy of a packet to the port that its bucket chose. It exists with
// Multicast.
//
// A packet never goes from the tunnel to the gateway, because the sender's Node has already sent
// it out. It never goes from the gateway to the tunnel, because other Nodes get it from the
// underlay.
//
// Reads:  OutputRegField, TargetOFPortField, PktSourceField.
// Writes: nothing.
// Next:   none. Table-miss: drop.

func (p *Pipeline) multicastOutput() []*flow.Entry {
	const at = tableMulticastOutput
	all := one(p.entry(forMulticast, at, priorityNormal, match(OutputToOFPortRegMark.Is()), toPortIn(TargetOFPortField)))
	if !hasTunnel(p) {
		return all
	}
	never := func(from Mark, to uint32) *flow.Entry {
		return p.entry(forMulticast, at, priorityHigh, match(from.Is(), OutputToOFPortRegMark.Is(), TargetOFPortField.Is(uint64(to))))
	}
	return append(all, never(FromTunnelRegMark, p.c.Gateway.No), never(FromGatewayRegMark, p.c.Tunnel.No))
}
