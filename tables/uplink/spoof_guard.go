package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// SpoofGuard lets a pod send only from its own addresses.
//
// Reads:  in_port, and the sender's addresses.
// Writes: nothing.
// Next:   ConntrackZone. Table-miss: drop.

func spoofGuard(n *layout.Node) []layout.Entry {
	all := []layout.Entry{of("W-24", "what the Node has routed", layout.NewEntry(tableSpoofGuard, priorityNormal,
		layout.Match(layout.IPv4, layout.InPort(n.Gateway)), goTo(tableConntrackZone)))}
	for _, p := range n.Pods {
		all = append(all, of("W-22", "IP of "+p.Port.Name, layout.NewEntry(tableSpoofGuard, priorityNormal,
			layout.Match(layout.IPv4, layout.InPort(p.Port), layout.EthAddr(flow.EthSrc, p.Port.MAC), layout.Host(flow.IPSrc, p.IP())),
			goTo(tableConntrackZone))))
	}
	return all
}
