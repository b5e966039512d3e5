package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// IPv6 does for neighbour discovery (RFC 4861) the work of the two ARP tables. It switches the
// messages and lets a Pod use only its own addresses in them. It exists with IPv6.
//
// A Pod's solicitation carries the Pod's MAC as link-layer option, or no option. SpoofGuard has
// checked its source, or its target if it has no source. A Pod's advertisement has one of the
// Pod's addresses as target. It carries the same option, which the answer to a unicast
// solicitation may leave out (section 7.2.4). A router advertisement from a Pod is dropped. So
// are all other packets from or to link-local addresses but multicast, because policies do not
// know these addresses.
//
// Reads:  in_port, PktSourceField, icmpv6_type and _code, nd_target, nd_sll, nd_tll, ipv6_dst.
// Writes: nothing.
// Next:   NORMAL for neighbour discovery and multicast. Table-miss: conntrack.

func (p *Pipeline) ndSwitch() (all []*flow.Entry) {
	if !hasIPv6(p) {
		return nil
	}
	for _, message := range []uint64{ndNeighborSolicitation, ndNeighborAdvertisement} {
		all = append(all, p.entry(forPods, tableIPv6, priorityNormal, match(nd(message)), flow.Normal{}))
	}
	return append(all, p.entry(forPods, tableIPv6, priorityNormal, match(dstIn(ipv6Multicast)), flow.Normal{}))
}

// ndDrop drops messages that Pods may not send. ndFromPod has the exceptions.
func (p *Pipeline) ndDrop() (all []*flow.Entry) {
	if !hasIPv6(p) {
		return nil
	}
	for _, message := range []uint64{ndRouterAdvertisement, ndNeighborSolicitation, ndNeighborAdvertisement} {
		all = append(all, p.entry(forPods, tableIPv6, priorityHigh, match(FromPodRegMark.Is(), icmpv6(message))))
	}
	for _, t := range []term{srcIn(ipv6LinkLocal), dstIn(ipv6LinkLocal)} {
		all = append(all, p.entry(forPods, tableIPv6, priorityLow, match(FromPodRegMark.Is(), t)))
	}
	return all
}

// noLinkLayerAddress is the value of nd_sll and nd_tll without the option.
var noLinkLayerAddress [6]byte

func (p *Pipeline) ndFromPod(pod Pod) (all []*flow.Entry) {
	normal := func(terms ...term) {
		all = append(all, p.entry(forPods, tableIPv6, priorityHigher,
			match(append(terms, inPort(pod.Port.No))...), flow.Normal{}))
	}
	options := [][6]byte{pod.Port.MAC, noLinkLayerAddress}
	solicits := false
	for _, a := range p.sendersOf(pod) {
		if familyOf(a) != IPv6 {
			continue
		}
		solicits = true
		for _, mac := range options {
			normal(nd(ndNeighborAdvertisement), ndTarget(a), layout.EthAddr(flow.NDTLL, mac))
		}
	}
	for _, mac := range options {
		if solicits {
			normal(nd(ndNeighborSolicitation), layout.EthAddr(flow.NDSLL, mac))
		}
	}
	return all
}

func ndTarget(a netip.Addr) term {
	return func(m *flow.Match) { m.AddExact(flow.NDTarget, flow.ValueOfAddr(a)) }
}

func icmpv6(message uint64) term {
	return func(m *flow.Match) {
		IPv6.proto(protoICMPv6)(m)
		m.AddExact(flow.ICMPv6Type, flow.Value{Lo: message})
	}
}

// nd matches a message of neighbour discovery. All of them have code 0.
func nd(message uint64) term {
	return func(m *flow.Match) {
		icmpv6(message)(m)
		m.AddExact(flow.ICMPv6Code, flow.Value{})
	}
}
