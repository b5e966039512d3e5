package windows2020

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ARPResponder answers for the gateways of other Nodes, and switches all other ARP of pods, as
// on Linux. The host's ARP does not come here.
//
// Reads:  arp_op, arp_tpa.
// Writes: the reply.
// Next:   back where it came from, or NORMAL. Table-miss: drop.

func arpResponder(n *layout.Node) []layout.Entry {
	all := []layout.Entry{linux("pods and the gateway find each other", layout.NewEntry(tableARPResponder, priorityLow, layout.Match(layout.ARP), flow.Normal{}))}
	for _, p := range n.Peers {
		for _, gateway := range p.GatewayIPs {
			all = append(all, linux("the next hop to another Node's pods", arpReply(gateway)))
		}
	}
	return all
}

// arpReply answers who asks for an address with the Global Virtual MAC (RFC 826).
func arpReply(addr netip.Addr) *flow.Entry {
	set := func(id flow.FieldID, v flow.Value) flow.Action {
		return flow.SetField{Field: id, Value: v, Mask: flow.Ones(flow.FieldByID(id).Bits)}
	}
	move := func(from, to flow.FieldID) flow.Action {
		return flow.Move{Src: flow.FieldByID(from).Full(), Dst: flow.FieldByID(to).Full()}
	}
	mac := layout.MACValue(virtualMAC)
	return layout.NewEntry(tableARPResponder, priorityNormal,
		layout.Match(layout.ARP, layout.Host(flow.ArpTPA, addr), layout.Exact(flow.ArpOp, 1)),
		move(flow.EthSrc, flow.EthDst), set(flow.EthSrc, mac), set(flow.ArpOp, flow.Value{Lo: 2}),
		move(flow.ArpSHA, flow.ArpTHA), set(flow.ArpSHA, mac),
		move(flow.ArpSPA, flow.ArpTPA), set(flow.ArpSPA, flow.ValueOfAddr(addr)), flow.OutputInPort{})
}
