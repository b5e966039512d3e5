package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L2ForwardingCalc finds the port of a destination MAC: of the gateway, of the
// tunnel, which has the Global Virtual MAC, and of each Pod.
//
// It sends nothing: it notes the port, and Output sends. The ingress policies between
// the two ask by the port which Pod a packet is for, and may still drop it. The one
// entry of the Global Virtual MAC leads to all Pods of all other Nodes.
//
// With FlexibleIPAM, the Node itself has a port too, and what a Pod of the underlay sends to
// nobody on this Node leaves by the card. A MAC address is asked for in its VLAN; Antrea asks in
// any, so that a Pod that knows a MAC address leaves its VLAN.
//
// On an external Node, the port of entry says by which port a packet leaves.
//
// Reads:  eth_dst, in_port on an external Node, VLANIDField, AntreaFlexibleIPAMRegMark.
// Writes: TargetOFPortField, OutputToOFPortRegMark.
// Next:   TrafficControl, or the ingress policies without it; also the table-miss. Conntrack
// for packets to the Node or to the card: no ingress policy concerns them.

func (p *Pipeline) switchTo(port Port, vlan uint16) *flow.Entry {
	return p.entry(forPods, tableL2ForwardingCalc, priorityNormal, match(layout.EthAddr(flow.EthDst, port.MAC), p.inVLAN(vlan)),
		TargetOFPortField.Set(uint64(port.No)), OutputToOFPortRegMark.Set(), p.goNext(tableL2ForwardingCalc))
}

func (p *Pipeline) switchToTunnel() []*flow.Entry {
	if !hasTunnel(p) {
		return nil
	}
	return one(p.switchTo(Port{No: p.c.Tunnel.No, MAC: GlobalVirtualMAC}, 0))
}

func (p *Pipeline) switchOnUnderlay() []*flow.Entry {
	leave := func(priority uint16, port Port, t ...term) *flow.Entry {
		return p.entry(forPods, tableL2ForwardingCalc, priority, match(t...),
			TargetOFPortField.Set(uint64(port.No)), OutputToOFPortRegMark.Set(), p.goStage(stageConntrack))
	}
	return []*flow.Entry{
		leave(priorityNormal, p.c.Bridge, layout.EthAddr(flow.EthDst, p.c.Bridge.MAC), p.inVLAN(0)),
		leave(priorityLow, p.c.Uplink, AntreaFlexibleIPAMRegMark.Is()),
	}
}

// switchAcross sends what comes in by one port of an external Node to the other.
func (p *Pipeline) switchAcross(from, to Port) *flow.Entry {
	return p.entry(forExternal, tableL2ForwardingCalc, priorityNormal, match(IPv4.ip(), inPort(from.No)),
		OutputToOFPortRegMark.Set(), TargetOFPortField.Set(uint64(to.No)), p.goNext(tableL2ForwardingCalc))
}
