package tables

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L2ForwardingCalc finds the port of a destination MAC: of the gateway, of the tunnel, which has
// the Global Virtual MAC, and of each Pod.
//
// It only writes the port into a register; Output sends. The ingress policies between the two
// find the packet's Pod by this port, and may still drop it. One entry, that of the Global
// Virtual MAC, leads to all Pods of all other Nodes.
//
// With FlexibleIPAM, the Node itself has a port too. Packets from a Pod of the underlay to an
// unknown MAC address leave by the card. A MAC address is matched in its VLAN. Antrea matches it
// in any, so a Pod that knows a MAC address can leave its VLAN.
//
// On an external Node, the input port decides the output port.
//
// Reads:  eth_dst, in_port on an external Node, VLANIDField, AntreaFlexibleIPAMRegMark.
// Writes: TargetOFPortField, OutputToOFPortRegMark.
// Next:   TrafficControl, or the ingress policies without it; also the table-miss. Conntrack for
// packets to the Node or to the card: no ingress policy concerns them.

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

// switchAcross sends packets from one port of an external Node to the other.
func (p *Pipeline) switchAcross(from, to Port) *flow.Entry {
	return p.entry(forExternal, tableL2ForwardingCalc, priorityNormal, match(IPv4.ip(), inPort(from.No)),
		OutputToOFPortRegMark.Set(), TargetOFPortField.Set(uint64(to.No)), p.goNext(tableL2ForwardingCalc))
}
