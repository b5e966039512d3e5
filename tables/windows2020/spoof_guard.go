package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// SpoofGuard lets a pod send only from its own addresses, as on Linux.
//
// Reads:  in_port, and the sender's addresses.
// Writes: nothing.
// Next:   ARPResponder for ARP, Conntrack for IP. Table-miss: drop.

func spoofGuard(n *layout.Node) []layout.Entry {
	all := []layout.Entry{
		linux("the gateway's own ARP", layout.NewEntry(tableSpoofGuard, priorityNormal,
			layout.Match(layout.ARP, layout.InPort(n.Gateway), layout.Host(flow.ArpSPA, n.GatewayIP), layout.EthAddr(flow.ArpSHA, n.Gateway.MAC)),
			goTo(tableARPResponder))),
		linux("what the Node has routed", layout.NewEntry(tableSpoofGuard, priorityNormal,
			layout.Match(layout.IPv4, layout.InPort(n.Gateway)), goTo(tableConntrack))),
	}
	for _, p := range n.Pods {
		all = append(all,
			linux("ARP of "+p.Port.Name, layout.NewEntry(tableSpoofGuard, priorityNormal,
				layout.Match(layout.ARP, layout.InPort(p.Port), layout.Host(flow.ArpSPA, p.IP()), layout.EthAddr(flow.ArpSHA, p.Port.MAC)),
				goTo(tableARPResponder))),
			linux("IP of "+p.Port.Name, layout.NewEntry(tableSpoofGuard, priorityNormal,
				layout.Match(layout.IPv4, layout.InPort(p.Port), layout.EthAddr(flow.EthSrc, p.Port.MAC), layout.Host(flow.IPSrc, p.IP())),
				goTo(tableConntrack))))
	}
	return all
}
