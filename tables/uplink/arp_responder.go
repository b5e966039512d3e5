package uplink

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ARPResponder tells pods and the gateway of each other, and answers for the gateways of other
// Nodes.
//
// A question goes to the one port that has the address. So no ARP of pods reaches the card or
// the host's own port.
//
// Reads:  arp_op, arp_tpa.
// Writes: the reply.
// Next:   nothing. Table-miss: drop.

func arpResponder(n *layout.Node) []layout.Entry {
	ask := func(p layout.Port, ip netip.Addr) layout.Entry {
		return of("W-22", "to "+p.Name, layout.NewEntry(tableARPResponder, priorityLow, layout.Match(layout.ARP, layout.Host(flow.ArpTPA, ip)), to(p)))
	}
	all := []layout.Entry{ask(n.Gateway, n.GatewayIP)}
	for _, p := range n.Pods {
		all = append(all, ask(p.Port, p.IP()))
	}
	for _, p := range n.Peers {
		for _, gateway := range p.GatewayIPs {
			all = append(all, of("W-22", "the next hop to another Node's pods", arpReply(gateway)))
		}
	}
	return all
}

// arpReply answers a question for an address with the Global Virtual MAC (RFC 826).
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
