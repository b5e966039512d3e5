package vppl3

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// nat44-out2in translates a Service's address to its endpoint. Addresses of pods stay.
//
// Reads:  the destination.
// Writes: the destination; a session in zone 2.
// Next:   ip4-lookup, which is also the table-miss.

func out2In(n *layout.Node) []layout.Entry {
	return append(services(n, tableOut2In),
		entry("V-12", "no Service's address: no session", tableOut2In, priorityMiss, flow.Match{}, goTo(tableLookup)))
}

// services are the static mappings of all Services, for client pods.
func services(n *layout.Node, table uint8) (all []layout.Entry) {
	for _, s := range n.Services {
		translate := layout.Commit(natZone, tableLookup)
		translate.NAT = &flow.NAT{
			Type: flow.NATDestination, AddrMin: s.Endpoint.Addr(), AddrMax: s.Endpoint.Addr(), PortMin: s.Endpoint.Port(), PortMax: s.Endpoint.Port(),
		}
		all = append(all, entry("V-12", "the endpoint of "+s.Addr.String(), table, priorityNormal,
			layout.Match(layout.IPv4, layout.Exact(flow.IPProto, uint64(s.Proto)), layout.Host(flow.IPDst, s.Addr.Addr()), dstPort(s.Proto, s.Addr.Port())), translate))
	}
	return all
}

// dstPort matches a destination port of TCP or UDP.
func dstPort(proto uint8, port uint16) layout.Term {
	if proto == 17 {
		return layout.Exact(flow.UDPDst, uint64(port))
	}
	return layout.Exact(flow.TCPDst, uint64(port))
}
