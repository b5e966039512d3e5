package uplink

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// EndpointDNAT translates a ClusterIP to its endpoint, here to a single one.
//
// Reads:  ct_state, the destination.
// Writes: the destination; RewriteMACField, ServiceCTMarkField.
// Next:   L3Forwarding, which is also the table-miss.

func endpointDNAT(n *layout.Node) []layout.Entry {
	var all []layout.Entry
	for _, s := range n.Services {
		commit := layout.Commit(ctZone, tableL3Forwarding, serviceCTMark.Set())
		commit.NAT = &flow.NAT{
			Type: flow.NATDestination, AddrMin: s.Endpoint.Addr(), AddrMax: s.Endpoint.Addr(), PortMin: s.Endpoint.Port(), PortMax: s.Endpoint.Port(),
		}
		port := flow.TCPDst
		if s.Proto == 17 {
			port = flow.UDPDst
		}
		all = append(all, of("W-23", "the endpoint of "+s.Addr.String(), layout.NewEntry(tableEndpointDNAT, priorityNormal,
			layout.Match(layout.CtState(layout.CtNew|layout.CtTrk, 0), layout.IPv4, layout.Exact(flow.IPProto, uint64(s.Proto)),
				layout.Host(flow.IPDst, s.Addr.Addr()), layout.Exact(port, uint64(s.Addr.Port()))),
			rewriteMACRegMark.Set(), commit)))
	}
	return append(all, miss(tableEndpointDNAT, tableL3Forwarding))
}
