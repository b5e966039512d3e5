package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// UplinkClassifier marks a packet with its source, and passes the host's own network through.
//
// The host's card is a port, and so is the host. Frames other than IPv4 pass between the two at
// once. Of the host's IPv4, only packets to pods of this Node enter the pipeline. All IPv4
// packets from the card enter it. Replies to pods and to the host have the Node's address, and
// only conntrack can tell them apart.
//
// In mode shared the host has no port. From the card, the kernel gives the switch only packets
// that may answer a pod.
//
// Reads:  in_port; the destination address of packets from the host.
// Writes: PktSourceField, RewriteMACField.
// Next:   ARPSpoofGuard for ARP; SpoofGuard from pods and the gateway; ConntrackZone from
// elsewhere. Table-miss: drop.

func uplinkClassifier(n *layout.Node) []layout.Entry {
	entry := func(row, why string, priority uint16, m flow.Match, actions ...flow.Action) layout.Entry {
		return of(row, why, layout.NewEntry(tableUplinkClassifier, priority, m, actions...))
	}
	all := []layout.Entry{
		entry("W-16", "an IP packet from the card may answer a pod, which only conntrack knows", priorityNormal,
			layout.Match(layout.IPv4, layout.InPort(n.Uplink)), fromUplinkRegMark.Set(), goTo(tableConntrackZone)),
		entry("W-24", "the host's connections to pods enter by the gateway", priorityNormal,
			layout.Match(layout.IPv4, layout.InPort(n.Gateway)), fromGatewayRegMark.Set(), goTo(tableSpoofGuard)),
		entry("W-22", "ARP of the gateway", priorityNormal, layout.Match(layout.ARP, layout.InPort(n.Gateway)), goTo(tableARPSpoofGuard)),
	}
	if !shared(n) {
		all = append(all,
			entry("W-09", "what the host forwards to a pod of its own enters the pipeline", priorityHigh,
				layout.Match(layout.IPv4, layout.InPort(n.Bridge), layout.Net(flow.IPDst, n.PodCIDR)),
				fromBridgeRegMark.Set(), rewriteMACRegMark.Set(), goTo(tableConntrackZone)),
			entry("W-08", "what the host sends elsewhere leaves by the card", priorityLow, layout.Match(layout.InPort(n.Bridge)), to(n.Uplink)),
			entry("W-11", "what is not IPv4 is the host's", priorityLow, layout.Match(layout.InPort(n.Uplink)), to(n.Bridge)))
	}
	if n.Tunnel.No != 0 {
		all = append(all, entry("W-22", "from another Node, which has checked the sender", priorityNormal,
			layout.Match(layout.IPv4, layout.InPort(n.Tunnel)), fromTunnelRegMark.Set(), rewriteMACRegMark.Set(), goTo(tableConntrackZone)))
	}
	for _, p := range n.Pods {
		all = append(all,
			entry("W-22", "IP of "+p.Port.Name, priorityLow, layout.Match(layout.IPv4, layout.InPort(p.Port)), fromPodRegMark.Set(), goTo(tableSpoofGuard)),
			entry("W-22", "ARP of "+p.Port.Name, priorityLow, layout.Match(layout.ARP, layout.InPort(p.Port)), goTo(tableARPSpoofGuard)))
	}
	return all
}
