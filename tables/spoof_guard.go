package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// SpoofGuard lets a Pod send only from its own addresses. Packets from the gateway pass, because
// the Node routes for others.
//
// A Pod with an IPv6 address also has the link-local address of its MAC. Antrea admits every
// link-local source from every port. Here a Pod may use only its own: NORMAL in table IPv6 learns
// from these packets, and neighbours believe the source of a solicitation. A Pod that picks
// another link-local address cannot send from it.
//
// Before a Pod uses an address, it asks whether another host has it (duplicate address detection,
// RFC 4862, section 5.4). That solicitation has no source address. A Pod may send it only for its
// own addresses. Otherwise it could make another Pod, which is asking for its own address, give
// it up.
//
// Reads:  in_port, eth_src, the source address; icmpv6_type and _code, nd_target, nd_sll.
// Writes: nothing; CtZoneField with FlexibleIPAM.
// Next:   IPv4: conntrack, or with Multicast PipelineIPClassifier; IPv6: table IPv6. Table-miss:
// drop.

func (p *Pipeline) guardGateway(f Family) []*flow.Entry {
	return []*flow.Entry{p.entry(forPods, tableSpoofGuard, priorityNormal,
		match(f.ip(), inPort(p.c.Gateway.No)), append(p.zoneOf(f), p.goValid(f))...)}
}

func (p *Pipeline) guardPod(pod Pod) (all []*flow.Entry) {
	for _, a := range p.sendersOf(pod) {
		all = append(all, p.entry(forPods, tableSpoofGuard, priorityNormal,
			match(inPort(pod.Port.No), layout.EthAddr(flow.EthSrc, pod.Port.MAC), src(a)),
			append(p.zoneIn(familyOf(a), pod.VLAN), p.goValid(familyOf(a)))...))
		if familyOf(a) == IPv6 {
			all = append(all, p.guardDetection(pod.Port, a))
		}
	}
	return all
}

// guardDetection passes the solicitations of duplicate address detection. They have no link-layer
// option (RFC 4861, section 4.3).
func (p *Pipeline) guardDetection(port Port, own netip.Addr) *flow.Entry {
	return p.entry(forPods, tableSpoofGuard, priorityNormal,
		match(inPort(port.No), layout.EthAddr(flow.EthSrc, port.MAC), src(netip.IPv6Unspecified()),
			nd(ndNeighborSolicitation), ndTarget(own), layout.EthAddr(flow.NDSLL, noLinkLayerAddress)),
		p.goValid(IPv6))
}

// goValid sends on a packet whose source is right.
func (p *Pipeline) goValid(f Family) flow.Action {
	if f == IPv6 {
		return p.goTo(tableIPv6)
	}
	if hasMulticast(p) {
		return p.goTo(tablePipelineIPClassifier)
	}
	return p.goStage(stageConntrackState)
}

// sendersOf are the addresses that a Pod may send from: its own and, if one is IPv6, its
// link-local one.
func (p *Pipeline) sendersOf(pod Pod) []netip.Addr {
	addrs := p.addrsInFamilies(pod.IPs)
	for _, a := range addrs {
		if familyOf(a) == IPv6 {
			return append(addrs, linkLocalOf(pod.Port.MAC))
		}
	}
	return addrs
}
