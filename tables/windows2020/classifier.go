package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// Classifier marks a packet with its source, and passes the host's own network through.
//
// The host's card is a port here, and so is the host. Packets between the two skip conntrack,
// except IP packets from the card. Replies to pods and to the host have the Node's address, and
// only conntrack can tell them apart.
//
// Reads:  in_port; the destination address of packets from the host.
// Writes: PktSourceField; the Global Virtual MAC into packets from the host to a pod.
// Next:   SpoofGuard from pods and the gateway, Conntrack from elsewhere. Table-miss: drop.

func classifier(n *layout.Node) []layout.Entry {
	all := []layout.Entry{
		written("W-09", "what the host forwards to a pod of its own enters the pipeline", layout.NewEntry(tableClassifier, priorityHigh,
			layout.Match(layout.IPv4, layout.InPort(n.Bridge), layout.Net(flow.IPDst, n.PodCIDR)),
			fromBridgeMark.Set(), layout.SetMAC(flow.EthDst, virtualMAC), goTo(tableConntrack))),
		literal("W-16", "an IP packet from the card may answer a pod, which only conntrack knows", layout.NewEntry(tableClassifier, priorityNormal,
			layout.Match(layout.IPv4, layout.InPort(n.Uplink)), fromUplinkMark.Set(), goTo(tableConntrack))),
		written("W-08", "what the host sends elsewhere leaves by the card", layout.NewEntry(tableClassifier, priorityNormal,
			layout.Match(layout.InPort(n.Bridge)), output(n.Uplink))),
		written("W-11", "what is not IP is the host's", layout.NewEntry(tableClassifier, priorityLow,
			layout.Match(layout.InPort(n.Uplink)), output(n.Bridge))),
		written("W-24", "the host's connections to pods enter by the gateway", layout.NewEntry(tableClassifier, priorityNormal,
			layout.Match(layout.InPort(n.Gateway)), fromGatewayMark.Set(), goTo(tableSpoofGuard))),
	}
	if n.Tunnel.No != 0 {
		all = append(all, linux("from another Node, which has checked the sender", layout.NewEntry(tableClassifier, priorityNormal,
			layout.Match(layout.InPort(n.Tunnel)), fromTunnelMark.Set(), goTo(tableConntrack))))
	}
	for _, p := range n.Pods {
		all = append(all, linux("from "+p.Port.Name, layout.NewEntry(tableClassifier, priorityLow,
			layout.Match(layout.InPort(p.Port)), fromPodMark.Set(), goTo(tableSpoofGuard))))
	}
	return all
}
