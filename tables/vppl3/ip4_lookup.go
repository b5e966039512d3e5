package vppl3

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// ip4-lookup finds the pod of an address: each has a route of 32 bits. No entry has the pods'
// next hop, so nothing answers there.
//
// A pod that reaches itself by a Service would get a packet from its own address, which its
// kernel drops. So this table replaces the source with the loopback address: the last one of the
// pods' range, as in VPP.
//
// Reads:  the addresses.
// Writes: TxSwIfIndex; the source, and a session in zone 3.
// Next:   ip4-rewrite. Table-miss: drop.

func lookup(n *layout.Node) (all []layout.Entry) {
	for _, p := range n.Pods {
		if isBackend(n, p.IP()) {
			stand := layout.Commit(loopbackZone, tableLookup)
			stand.NAT = &flow.NAT{Type: flow.NATSource, AddrMin: loopback(n), AddrMax: loopback(n)}
			all = append(all, entry("V-18", "the loopback address stands for "+p.Port.Name, tableLookup, priorityLoopback,
				layout.Match(layout.IPv4, layout.Host(flow.IPSrc, p.IP()), layout.Host(flow.IPDst, p.IP())), stand))
		}
		all = append(all, entry("V-06", "the route to "+p.Port.Name, tableLookup, priorityNormal,
			layout.Match(layout.IPv4, layout.Host(flow.IPDst, p.IP())), txField.Set(uint64(p.Port.No)), goTo(tableRewrite)))
	}
	return all
}
