package windows2020

import (
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
			all = append(all, linux("the next hop to another Node's pods", layout.ARPReply(tableARPResponder, priorityNormal, gateway, virtualMAC)))
		}
	}
	return all
}
