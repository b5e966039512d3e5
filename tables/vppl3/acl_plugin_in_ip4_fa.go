package vppl3

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// acl-plugin-in-ip4-fa takes what pods send, and reflects it: the session that it makes lets
// the answers pass acl-plugin-out-ip4-fa.
//
// It allows everything, because a policy is checked where the packet leaves: only there is a
// Service's address translated. The pod has to send by its own addresses to its own link, for
// all pods have one MAC address, but each has a next hop of its own.
//
// A pod that no policy speaks of has no sessions.
//
// An answer of a pod to itself goes to the loopback address (ip4-lookup), and gets the pod's own in its
// place.
//
// Reads:  in_port, the MAC addresses, the addresses.
// Writes: a session in zone 1; the destination, by the connection in zone 3.
// Next:   nat44-in2out for endpoints of Services, nat44-out2in for others. Table-miss: drop,
// which is what ARP meets.

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
