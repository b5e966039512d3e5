package uplink

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ARPResponder switches ARP between pods and the gateway, and answers for the gateways of other
// Nodes.
//
// A request goes only to the port that has the address. So no ARP of pods reaches the card or the
// host's own port.
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
			all = append(all, of("W-22", "the next hop to another Node's pods", layout.ARPReply(tableARPResponder, priorityNormal, gateway, virtualMAC)))
		}
	}
	return all
}
