package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L2ForwardingCalculation finds the port of a destination MAC address.
//
// Reads:  the destination MAC address.
// Writes: TargetOFPortField, PortFound.
// Next:   IngressRule, which is also the table-miss.

func l2ForwardingCalculation(n *layout.Node) []layout.Entry {
	to := func(mac [6]byte, p layout.Port) layout.Entry {
		return linux("to "+p.Name, layout.NewEntry(tableL2ForwardingCalculation, priorityNormal, layout.Match(layout.EthAddr(flow.EthDst, mac)),
			targetOFPortField.Set(uint64(p.No)), portFoundMark.Set(), goTo(tableIngressRule)))
	}
	all := []layout.Entry{to(n.Gateway.MAC, n.Gateway)}
	if n.Tunnel.No != 0 {
		all = append(all, to(virtualMAC, n.Tunnel))
	}
	for _, p := range n.Pods {
		all = append(all, to(p.Port.MAC, p.Port))
	}
	return append(all, miss(tableL2ForwardingCalculation, tableIngressRule))
}
