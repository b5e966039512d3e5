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
		commit := layout.Commit(ctZone, tableL3Forwarding, clusterIPMark.Set())
		commit.NAT = &flow.NAT{
			Type: flow.NATDestination, AddrMin: s.Endpoint.Addr(), AddrMax: s.Endpoint.Addr(), PortMin: s.Endpoint.Port(), PortMax: s.Endpoint.Port(),
		}
		port := flow.TCPDst
		if s.Proto == 17 {
			port = flow.UDPDst
		}
		all = append(all, written("W-23", "the endpoint of "+s.Addr.String(), layout.NewEntry(tableDNAT, priorityNormal,
			layout.Match(layout.CtState(layout.CtNew|layout.CtTrk, 0), layout.IPv4, layout.Exact(flow.IPProto, uint64(s.Proto)),
				layout.Host(flow.IPDst, s.Addr.Addr()), layout.Exact(port, uint64(s.Addr.Port()))),
			layout.SetMAC(flow.EthDst, virtualMAC), commit)))
	}
	return append(all, miss(tableDNAT, tableL3Forwarding))
}
