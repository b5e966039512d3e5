package vppl3

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ip4-lookup finds the pod behind an address: each has a route of 32 bits. No entry has the
// pods' next hop, so nobody answers there.
//
// Reads:  the destination address.
// Writes: TxSwIfIndex.
// Next:   ip4-rewrite. Table-miss: drop.

func lookup(n *layout.Node) (all []layout.Entry) {
	for _, p := range n.Pods {
		all = append(all, entry("V-06", "the route to "+p.Port.Name, tableLookup, priorityNormal,
			layout.Match(layout.IPv4, layout.Host(flow.IPDst, p.IP())), txField.Set(uint64(p.Port.No)), goTo(tableRewrite)))
	}
	return all
}
