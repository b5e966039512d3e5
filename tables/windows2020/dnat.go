package windows2020

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// DNAT translates a ClusterIP to its endpoint, here to a single one.
//
// Reads:  ct_state, the destination.
// Writes: the destination; the Global Virtual MAC, by which L3Forwarding routes; ConnMarkField.
// Next:   L3Forwarding, which is also the table-miss.

func dnat(n *layout.Node) []layout.Entry {
	var all []layout.Entry
	for _, s := range n.Services {
		all = append(all, written("W-23", "the endpoint of "+s.Addr.String(), layout.NewEntry(tableDNAT, priorityNormal, layout.Match(layout.ToService(&s)),
			layout.SetMAC(flow.EthDst, virtualMAC), layout.CommitDNAT(ctZone, tableL3Forwarding, &s, clusterIPMark.Set()))))
	}
	return append(all, miss(tableDNAT, tableL3Forwarding))
}
