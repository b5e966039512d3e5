package tables

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// L3Forwarding routes to the gateway, to a Pod of this Node, to another Node, or out of the
// cluster. It reaches other Nodes through the tunnel or by the gateway.
//
// A packet between two Pods of this Node by their own addresses stays unchanged: the Pods know
// each other's MAC addresses. A packet that was translated, or came by the tunnel, gets the MAC
// addresses of the gateway and the Pod (RewriteMACRegMark).
//
// With FlexibleIPAM, the Pods of one VLAN and the Node are on one link. Packets to other links
// keep the MAC address of the router that the Pod chose.
//
// In mode networkPolicyOnly, another CNI has given the Pods their routes. So the MAC address of a
// packet means nothing there. The destination address decides, and everything else goes to the
// Node.
//
// Reads:  the destination address, RewriteMACRegMark, PktSourceField, ct_state,
// FromGatewayCTMark, FromBridgeCTMark, ServiceCTMark, VLANIDField, AntreaFlexibleIPAMRegMark, and
// EgressReplyMark or in v2 FromTunnelCTMark.
// Writes: MAC addresses, tun_dst, PktDestinationField; TargetOFPortField and
// OutputToOFPortRegMark for a routed Pod.
// Next:   L3DecTTL; switching for packets that stay on the same link; EgressMark for packets that
// may leave the cluster. Table-miss: to the gateway.

// routeToGateway routes packets for the Node, and replies to connections that came from it.
func (p *Pipeline) routeToGateway(f Family) (all []*flow.Entry) {
	terms := []term{func(m *flow.Match) {
		f.ip()(m)
		tracked(layout.CtRpl, 0)(m)
		FromGatewayCTMark.Is()(m)
	}}
	if ip := p.gatewayIP(f); ip.IsValid() {
		terms = append(terms, dst(ip))
	}
	for _, t := range terms {
		all = append(all, p.entry(forPods, tableL3Forwarding, priorityHigh, match(t),
			layout.SetMAC(flow.EthDst, p.c.Gateway.MAC), ToGatewayRegMark.Set(), p.goTo(tableL3DecTTL)))
	}
	return all
}

// routeOnLink: packets between Pods of this Node are not routed, unless a Service's address was
// translated.
func (p *Pipeline) routeOnLink() (all []*flow.Entry) {
	if isPolicyOnly(p) {
		return nil
	}
	for _, cidr := range p.prefixesInFamilies(p.c.PodCIDRs) {
		all = append(all, p.entry(forPods, tableL3Forwarding, priorityNormal,
			match(NotRewriteMACRegMark.Is(), p.inVLAN(0), dstIn(cidr)), p.goStage(stageSwitching)))
	}
	return all
}

func (p *Pipeline) routeToPod(pod Pod) (all []*flow.Entry) {
	for _, a := range p.addrsInFamilies(pod.IPs) {
		if p.OnUnderlay(pod) {
			all = append(all, p.entry(forPods, tableL3Forwarding, priorityNormal, match(VLANIDField.Is(uint64(pod.VLAN)), dst(a)),
				layout.SetMAC(flow.EthDst, pod.Port.MAC), p.goTo(tableL3DecTTL)))
			continue
		}
		all = append(all, p.entry(forPods, tableL3Forwarding, priorityNormal,
			match(RewriteMACRegMark.Is(), p.inVLAN(0), dst(a)),
			layout.SetMAC(flow.EthSrc, p.c.Gateway.MAC), layout.SetMAC(flow.EthDst, pod.Port.MAC), p.goTo(tableL3DecTTL)))
		if isPolicyOnly(p) {
			all = append(all, p.entry(forPods, tableL3Forwarding, priorityNormal, match(dst(a)),
				layout.SetMAC(flow.EthDst, pod.Port.MAC), p.goTo(tableL3DecTTL)))
		}
	}
	return all
}

// routeToRouted routes to a Pod that shares no Ethernet with others, from any sender. Such Pods
// may all have one MAC address. So this entry chooses the port, and L2ForwardingCalc finds none.
func (p *Pipeline) routeToRouted(pod Pod) (all []*flow.Entry) {
	for _, a := range p.addrsInFamilies(pod.IPs) {
		all = append(all, p.entry(forPods, tableL3Forwarding, priorityNormal+1, match(dst(a)),
			layout.SetMAC(flow.EthSrc, layout.LinkMAC(pod.Port.No)), layout.SetMAC(flow.EthDst, pod.Port.MAC),
			TargetOFPortField.Set(uint64(pod.Port.No)), OutputToOFPortRegMark.Set(), p.goTo(tableL3DecTTL)))
	}
	return all
}

// routeToNode sends packets to the Node unless they are for its Pods, in mode networkPolicyOnly.
func (p *Pipeline) routeToNode(f Family) []*flow.Entry {
	if !isPolicyOnly(p) {
		return nil
	}
	return one(p.entry(forPods, tableL3Forwarding, priorityLow, match(f.ip()),
		layout.SetMAC(flow.EthDst, p.c.Gateway.MAC), ToGatewayRegMark.Set(), p.goTo(tableL3DecTTL)))
}

// routeToHost sends packets of the underlay's Pods to the Node itself. They go to its addresses,
// or are replies to connections that it began by its own port.
func (p *Pipeline) routeToHost(f Family) (all []*flow.Entry) {
	to := func(t ...term) {
		all = append(all, p.entry(forPods, tableL3Forwarding, priorityHigh, match(append(t, f.ip(), p.inVLAN(0))...),
			layout.SetMAC(flow.EthDst, p.c.Bridge.MAC), p.goStage(stageSwitching)))
	}
	to(tracked(layout.CtRpl, 0), FromBridgeCTMark.Is())
	for _, a := range p.c.NodeIPs {
		if familyOf(a) == f {
			to(AntreaFlexibleIPAMRegMark.Is(), dst(a))
		}
	}
	return all
}

// routeToPeer routes to the Pods of another Node. With DSR, it also routes packets to an endpoint
// there that keep the Service's address: no route of the underlay leads to that address.
func (p *Pipeline) routeToPeer(peer Peer) (all []*flow.Entry) {
	for _, cidr := range p.prefixesInFamilies(peer.PodCIDRs) {
		direct := p.NextHop(peer, cidr.Addr()).IsValid()
		if direct {
			all = append(all, p.routeByGateway(cidr))
		}
		far, ok := p.tunnelEnd(peer, familyOf(cidr.Addr()))
		if !ok {
			continue
		}
		if direct && hasEgress(p) {
			all = append(all, p.routeEgressReply(cidr, far))
		}
		for _, t := range p.peerTerms(cidr, direct) {
			all = append(all, p.entry(forPods, tableL3Forwarding, priorityNormal, match(t), p.toPeer(far)...))
		}
	}
	return all
}

// toPeer routes through the tunnel.
func (p *Pipeline) toPeer(far netip.Addr) []flow.Action {
	return []flow.Action{layout.SetMAC(flow.EthSrc, p.c.Gateway.MAC), layout.SetMAC(flow.EthDst, GlobalVirtualMAC), setTunDst(far),
		ToTunnelRegMark.Set(), p.goTo(tableL3DecTTL)}
}

// routeEgressReply takes replies back through the tunnel if their Pod sent through it for an
// Egress, although its Node is reached without. The underlay need not pass packets from outside
// the cluster between Nodes. The Node's rules have led the replies to the switch.
func (p *Pipeline) routeEgressReply(cidr netip.Prefix, far netip.Addr) *flow.Entry {
	if isV2(p) { // the connection has its source
		return p.entry(forPods, tableL3Forwarding, priorityNormal+1,
			match(FromGatewayRegMark.Is(), FromTunnelCTMark.Is(), dstIn(cidr)), p.toPeer(far)...)
	}
	return p.entry(forEgress, tableL3Forwarding, priorityHigh,
		match(FromGatewayRegMark.Is(), EgressReplyMark.Is(), dstIn(cidr)), p.toPeer(far)...)
}

// routeByGateway routes to Pods of another Node that are reached without a tunnel: the Node
// forwards the packet. Packets from the gateway may go back there. For a Service's connection
// from outside, that needs SNATMark.
func (p *Pipeline) routeByGateway(cidr netip.Prefix) *flow.Entry {
	terms := []term{dstIn(cidr)}
	if hasFlexibleIPAM(p) { // Pods of the underlay have a router of their own
		terms = append(terms, NotAntreaFlexibleIPAMRegMark.Is())
	}
	return p.entry(forPods, tableL3Forwarding, priorityNormal, match(terms...),
		layout.SetMAC(flow.EthDst, p.c.Gateway.MAC), ToGatewayRegMark.Set(), p.goTo(tableL3DecTTL))
}

// NextHop is the next hop for packets to an address of another Node's Pods without a tunnel. It
// is not valid if they need one.
func (p *Pipeline) NextHop(n Peer, pod netip.Addr) netip.Addr {
	return p.c.Encap.NextHop(n.NodeIPs, p.c.TransportCIDRs, pod)
}

// peerTerms match the packets that go through the tunnel to Pods of another Node. With direct,
// packets for the Pods' own addresses do not.
func (p *Pipeline) peerTerms(cidr netip.Prefix, direct bool) (terms []term) {
	if !direct {
		terms = append(terms, dstIn(cidr))
	}
	if hasDSR(p) && familyOf(cidr.Addr()) == IPv4 {
		terms = append(terms, func(m *flow.Match) {
			IPv4.ip()(m)
			m.Add(EndpointIPField.Subfield.Field, flow.ValueOfAddr(cidr.Addr()), prefixMask(cidr))
			DSRServiceRegMark.Is()(m)
		})
	}
	return terms
}

// Reaches reports whether there is a way to all Pods of a Node. The Node needs an address of a
// family that the tunnel uses. For Pods reached without a tunnel, it needs one of each Pod
// family.
func (p *Pipeline) Reaches(n Peer) bool {
	_, tunnel := p.tunnelEnd(n, IPv4)
	if p.c.Encap == Encap {
		return tunnel
	}
	return tunnel || !slices.ContainsFunc(p.prefixesInFamilies(n.PodCIDRs), func(cidr netip.Prefix) bool {
		return !p.NextHop(n, cidr.Addr()).IsValid()
	})
}

// TunnelEnd is the tunnel destination for packets to an address of a Node's Pods. It is false if
// no tunnel reaches that Node.
func (p *Pipeline) TunnelEnd(n Peer, pod netip.Addr) (end netip.Addr, ok bool) {
	return p.tunnelEnd(n, familyOf(pod))
}

// tunnelEnd is the address of a Node for packets of a family, among those that a tunnel from this
// Node reaches. It prefers an address of that family.
func (p *Pipeline) tunnelEnd(n Peer, f Family) (end netip.Addr, ok bool) {
	if !hasTunnel(p) {
		return end, false
	}
	for _, a := range n.NodeIPs {
		if len(p.c.TransportIPs) > 0 && !anyAddrOf(p.c.TransportIPs, familyOf(a)) {
			continue
		}
		if familyOf(a) == f {
			return a, true
		}
		if !ok {
			end, ok = a, true
		}
	}
	return end, ok
}

func anyAddrOf(addrs []netip.Addr, f Family) bool {
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool { return familyOf(a) == f })
}

// routeServiceOut sends a Service's connection from the gateway back to the gateway if its
// endpoint is not a Pod.
func (p *Pipeline) routeServiceOut() []*flow.Entry {
	if !hasProxy(p) {
		return nil
	}
	return []*flow.Entry{p.entry(forServices, tableL3Forwarding, priorityLow,
		match(FromGatewayRegMark.Is(), RewriteMACRegMark.Is(), ServiceCTMark.Is()),
		layout.SetMAC(flow.EthDst, p.c.Gateway.MAC), ToGatewayRegMark.Set(), p.goTo(tableL3DecTTL))}
}

// routeOut sends packets that leave the cluster to EgressMark, from Pods of this Node or through
// the tunnel.
func (p *Pipeline) routeOut(f Family) []*flow.Entry {
	if !hasEgress(p) {
		return nil
	}
	return []*flow.Entry{
		p.entry(forEgress, tableL3Forwarding, priorityLow,
			match(f.ip(), tracked(0, layout.CtRpl), FromPodRegMark.Is(), NotAntreaFlexibleIPAMRegMark.Is()),
			p.goTo(tableEgressMark)),
		p.entry(forEgress, tableL3Forwarding, priorityLow,
			match(f.ip(), tracked(0, layout.CtRpl), FromTunnelRegMark.Is()),
			layout.SetMAC(flow.EthDst, p.c.Gateway.MAC), p.goTo(tableEgressMark)),
	}
}

func (p *Pipeline) routeDefault() *flow.Entry {
	return p.entry(forPods, tableL3Forwarding, priorityMiss, match(), p.toGateway()...)
}

// toGateway sends a packet to the Node unchanged.
func (p *Pipeline) toGateway() []flow.Action {
	return []flow.Action{ToGatewayRegMark.Set(), p.goStage(stageSwitching)}
}
