package vppl3

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// acl-plugin-in-ip4-fa accepts packets from pods and makes a session for each (reflect). The
// session lets the replies pass acl-plugin-out-ip4-fa.
//
// It allows everything. Policies are checked where the packet leaves, because only there a
// Service's address is translated. All pods have one MAC address, but each has a link of its own.
// So a pod must send from its own addresses to its own link.
//
// If no policy names a pod, it has no sessions.
//
// A pod's reply to itself goes to the loopback address (ip4-lookup). This table writes the pod's
// own address instead.
//
// Reads:  in_port, the MAC addresses, the addresses.
// Writes: a session in zone 1; the destination, by the connection in zone 3.
// Next:   nat44-in2out for endpoints of Services, nat44-out2in for others. Table-miss: drop, also
// for ARP.

func aclIn(n *layout.Node) (all []layout.Entry) {
	for _, p := range n.Pods {
		ip := p.IP()
		own := []layout.Term{layout.IPv4, layout.InPort(p.Port), layout.EthAddr(flow.EthSrc, p.Port.MAC), layout.EthAddr(flow.EthDst, p.Link), layout.Host(flow.IPSrc, ip)}
		m, next := layout.Match(own...), firstNAT(n, ip)
		if isBackend(n, ip) {
			toItself := layout.Match(append(own, layout.Host(flow.IPDst, loopback(n)))...)
			all = append(all, entry("V-18", "an answer of "+p.Port.Name+" to itself", tableACLIn, priorityLoopback, toItself, layout.Restore(loopbackZone, next)))
		}
		if !isReferenced(n, ip) {
			all = append(all, entry("V-11", p.Port.Name+", which no policy speaks of", tableACLIn, priorityNormal, m, goTo(next)))
			continue
		}
		reflect := layout.Commit(aclZone, flow.NoTable)
		all = append(all, entry("V-11", "permit and reflect what "+p.Port.Name+" sends", tableACLIn, priorityNormal, m, reflect, &flow.CT{Zone: aclZone, Table: next}))
	}
	return all
}
