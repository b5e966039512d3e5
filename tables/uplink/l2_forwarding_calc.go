package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L2ForwardingCalc finds the port of a destination MAC address.
//
// Reads:  the destination MAC address.
// Writes: TargetOFPortField, OutputRegField.
// Next:   IngressRule, or ConntrackCommit if no pod has rules; it is also the table-miss.

func l2ForwardingCalc(n *layout.Node) []layout.Entry {
	port := func(mac [6]byte, p layout.Port) layout.Entry {
		return of("W-22", "to "+p.Name, layout.NewEntry(tableL2ForwardingCalc, priorityNormal, layout.Match(layout.EthAddr(flow.EthDst, mac)),
			targetOFPortField.Set(uint64(p.No)), outputToOFPortRegMark.Set(), goTo(checkedIngress(n))))
	}
	all := []layout.Entry{port(n.Gateway.MAC, n.Gateway)}
	if n.Tunnel.No != 0 {
		all = append(all, port(virtualMAC, n.Tunnel))
	}
	for _, p := range n.Pods {
		all = append(all, port(p.Port.MAC, p.Port))
	}
	return append(all, miss(tableL2ForwardingCalc, checkedIngress(n)))
}
