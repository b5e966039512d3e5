package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// SpoofGuard lets a Pod send from its own addresses only. What comes from the
// gateway passes: the Node routes for others.
//
// A Pod with an IPv6 address also has the link-local address that its MAC
// gives. Antrea admits every link-local source from every port; here it is the
// Pod's own or none, because NORMAL in table IPv6 learns from what passes, and
// neighbours believe the source of a solicitation. A Pod that picks another
// link-local address cannot send from it.
//
// Reads:  in_port, eth_src, the source address.
// Writes: nothing.
// Next:   IPv4: conntrack; IPv6: table IPv6. Table-miss: drop.

func (p *Pipeline) guardGateway(f Family) []*flow.Entry {
	return []*flow.Entry{p.entry(forPods, tableSpoofGuard, priorityNormal,
		match(f.ip(), inPort(p.c.Gateway.No)), p.goValid(f))}
}

func (p *Pipeline) guardPod(pod Pod) (all []*flow.Entry) {
	for _, a := range p.sendersOf(pod) {
		all = append(all, p.entry(forPods, tableSpoofGuard, priorityNormal,
			match(inPort(pod.Port.No), ethAddr(flow.EthSrc, pod.Port.MAC), src(a)), p.goValid(familyOf(a))))
	}
	return all
}

// goValid goes on with a packet whose source is right.
func (p *Pipeline) goValid(f Family) flow.Action {
	if f == IPv6 {
		return p.goTo(tableIPv6)
	}
	return p.goStage(stageConntrackState)
}

// sendersOf are the addresses that a Pod may send from: its own, and when one
// is IPv6, its link-local one.
func (p *Pipeline) sendersOf(pod Pod) []netip.Addr {
	addrs := p.ours(pod.IPs)
	for _, a := range addrs {
		if familyOf(a) == IPv6 {
			return append(addrs, linkLocalOf(pod.Port.MAC))
		}
	}
	return addrs
}
