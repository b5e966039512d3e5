package underlay

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/packet"
)

// A frame from the tunnel skips table SpoofGuard, because another Node is responsible for its
// source. But policies use that source. So the port itself checks that a Node sends only in the
// name of its own pods:
//
//  1. The outer source is a known Node. The kernel reports that address to the socket.
//  2. If an inner source is in a pod range of this Node or of any known Node, that range must be
//     the sending Node's. Otherwise a Node could pass a policy in the name of a pod that it does
//     not have.
//  3. Any other inner source passes. Replies to an Egress, requests that a load balancer hands on
//     (DSR) and Nodes themselves have such sources.
//  4. A known Node without ranges may not use any known range. Its own pods' packets pass by 3,
//     because their range is not known yet.
//  5. If ranges of two Nodes overlap, each may use the addresses in its own.
//
// The inner source is the source address of IPv4 or IPv6, and the sender protocol address of ARP.
// Neighbour discovery also claims its target: an advertisement always, a solicitation if it asks
// whether an address is free (RFC 4862, section 5.4.3).
//
// A stored set is immutable, so a receiver needs one atomic load per message. A frame allocates
// nothing.

// Peer is another Node: its address on the underlay and its pods' ranges.
type Peer struct {
	Address netip.Addr
	Pods    []netip.Prefix
}

// peers are the known Nodes and all pod ranges.
type peers struct {
	pods   map[netip.Addr][]netip.Prefix // a Node's ranges, by its address
	ranges map[netip.Prefix]struct{}     // of all Nodes, this one included
	bits4  []int                         // the lengths of the IPv4 ranges
	bits6  []int                         // and of the IPv6 ranges
	any    bool                          // every address counts as a Node's (Config.AnyPeer)
}

// newPeers is a set of Nodes, as seen from the Node that c describes.
func newPeers(nodes []Peer, c *Config) *peers {
	s := &peers{any: c.AnyPeer, pods: make(map[netip.Addr][]netip.Prefix, len(nodes)), ranges: map[netip.Prefix]struct{}{}}
	s.addRanges(c.Pods)
	for _, n := range nodes {
		a := n.Address.Unmap()
		s.pods[a] = append(s.pods[a], n.Pods...)
		s.addRanges(n.Pods)
	}
	return s
}

func (s *peers) addRanges(all []netip.Prefix) {
	for _, p := range all {
		s.ranges[p.Masked()] = struct{}{}
		bits := &s.bits6
		if p.Addr().Is4() {
			bits = &s.bits4
		}
		if !slices.Contains(*bits, p.Bits()) {
			*bits = append(*bits, p.Bits())
		}
	}
}

// equal says whether two sets are the same.
func (s *peers) equal(o *peers) bool {
	return maps.EqualFunc(s.pods, o.pods, slices.Equal) && maps.Equal(s.ranges, o.ranges)
}

// sender is a known Node that has sent a datagram.
type sender struct {
	address netip.Addr
	pods    []netip.Prefix // its own
	all     *peers
}

// sender is the Node with an address; false if no known Node has it.
func (s *peers) sender(a netip.Addr) (sender, bool) {
	pods, known := s.pods[a]
	return sender{a, pods, s}, known || s.any
}

// maySend reports whether the sender may use the addresses that a frame claims. The most common
// frames are parsed only up to their source.
func (n *sender) maySend(frame []byte) bool {
	ip := frame[packet.EthernetLen:]
	switch packet.Ethernet(frame).Type() {
	case packet.EtherTypeIPv4:
		if len(ip) >= packet.IPv4Len {
			return n.mayUse(packet.IPv4(ip).Src())
		}
	case packet.EtherTypeIPv6:
		if len(ip) >= packet.IPv6Len && (packet.IPv6(ip).NextHeader() == packet.ProtoTCP || packet.IPv6(ip).NextHeader() == packet.ProtoUDP) {
			return n.mayUse(packet.IPv6(ip).Src())
		}
	}
	return n.maySendParsed(frame)
}

// maySendParsed is maySend for every other frame.
func (n *sender) maySendParsed(frame []byte) bool {
	l := packet.ParseLayers(frame)
	switch {
	case l.L3 == 0:
		return true // it claims no address
	case l.EtherType == packet.EtherTypeIPv4:
		return n.mayUse(packet.IPv4(frame[l.L3:]).Src())
	case l.EtherType == packet.EtherTypeIPv6:
		return n.mayUse(packet.IPv6(frame[l.L3:]).Src()) && n.mayClaim(frame, &l)
	}
	return n.mayUse(packet.ARP(frame[l.L3:]).SPA())
}

// mayClaim reports whether the sender may use the neighbour discovery target that an IPv6 packet
// claims, if any.
func (n *sender) mayClaim(frame []byte, l *packet.Layers) bool {
	if l.Proto != packet.ProtoICMPv6 || l.L4 == 0 || l.End < l.L4+packet.NDLen {
		return true
	}
	nd := packet.ND(frame[l.L4:l.End])
	kind := packet.ICMP(nd).Type()
	claims := kind == packet.ICMPv6NeighborAdvert ||
		kind == packet.ICMPv6NeighborSolicit && packet.IPv6(frame[l.L3:]).Src().IsUnspecified()
	return !claims || n.mayUse(netip.AddrFrom16([16]byte(nd.Target())))
}

// mayUse reports whether an address is in the sender's ranges, or in no Node's.
func (n *sender) mayUse(a netip.Addr) bool {
	for _, p := range n.pods {
		if p.Contains(a) {
			return true
		}
	}
	return !n.all.havePod(a)
}

// havePod reports whether an address is in a pod range.
func (s *peers) havePod(a netip.Addr) bool {
	lengths := s.bits6
	if a.Is4() {
		lengths = s.bits4
	}
	for _, bits := range lengths {
		p, err := a.Prefix(bits)
		if _, known := s.ranges[p]; known && err == nil {
			return true
		}
	}
	return false
}
