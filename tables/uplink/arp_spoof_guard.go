package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ARPSpoofGuard lets pods and the gateway use only their own addresses in ARP.
//
// Reads:  in_port, arp_spa, arp_sha.
// Writes: nothing.
// Next:   ARPResponder. Table-miss: drop.

func arpSpoofGuard(n *layout.Node) []layout.Entry {
	own := func(p layout.Port, is layout.Term) layout.Entry {
		return of("W-22", "ARP of "+p.Name, layout.NewEntry(tableARPSpoofGuard, priorityNormal,
			layout.Match(layout.ARP, layout.InPort(p), is, layout.EthAddr(flow.ArpSHA, p.MAC)), goTo(tableARPResponder)))
	}
	all := []layout.Entry{own(n.Gateway, layout.Host(flow.ArpSPA, n.GatewayIP))}
	for _, p := range n.Pods {
		all = append(all, own(p.Port, layout.Host(flow.ArpSPA, p.IP())))
	}
	return all
}
