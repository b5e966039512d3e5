package attack

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// Messages of neighbour discovery (RFC 4861), and IPv6 multicast. Each message has the
// marker in an option that receivers ignore.

var (
	allNodes    = netip.MustParseAddr("ff02::1")
	allNodesMAC = [6]byte{0x33, 0x33, 0, 0, 0, 1}
)

// Option types. optionMarker is unassigned.
const (
	optionSource = 1
	optionTarget = 2
	optionMarker = 253
	unit         = 8 // options are multiples of so many bytes
)

// option is an option of neighbour discovery, padded to whole units.
func option(kind byte, data []byte) []byte {
	units := (2 + len(data) + unit - 1) / unit
	b := make([]byte, units*unit)
	b[0], b[1] = kind, byte(units)
	copy(b[2:], data)
	return b
}

// nd is a message in ICMPv6: the type, the second word, and the rest.
type nd struct {
	kind  uint8
	rest  uint32
	body  []byte
	limit uint8 // hop limit; 0 is 255
}

// message is the frame of an ND message.
func (s *stage) message(from, to host, m nd) []byte {
	m.limit = cmp.Or(m.limit, 255)
	return packettest.ICMP6(packettest.Options{
		EthSrc: from.mac, EthDst: to.mac, Src: from.address, Dst: to.address, TTL: m.limit,
		Payload: slices.Concat(m.body, option(optionMarker, s.marker)),
	}, m.kind, 0, m.rest)
}

// everybody are all hosts of a link.
var everybody = host{mac: allNodesMAC, address: allNodes}

// solicit asks for a host's MAC, by a frame to a MAC.
func (s *stage) solicit(from, target host, mac [6]byte) []byte {
	to := target
	if to.mac = mac; mac == allNodesMAC {
		to = everybody
	}
	return s.message(from, to, solicitation(from.mac, target.address))
}

// solicitation asks for an address and gives the asker's MAC.
func solicitation(mac [6]byte, target netip.Addr) nd {
	return nd{kind: packet.ICMPv6NeighborSolicit, body: slices.Concat(target.AsSlice(), option(optionSource, mac[:]))}
}

// advertisement says that an address is at a MAC.
func advertisement(mac [6]byte, target netip.Addr) nd {
	const override = 0x20 << 24
	return nd{kind: packet.ICMPv6NeighborAdvert, rest: override, body: slices.Concat(target.AsSlice(), option(optionTarget, mac[:]))}
}

// routerMessage advertises its sender as a router.
func routerMessage() nd {
	const hopLimit, lifetime = 64 << 24, 1800
	return nd{kind: packet.ICMPv6RouterAdvert, rest: hopLimit | lifetime, body: make([]byte, 8)}
}

func forgedAdvert(s *stage) [][]byte {
	me := s.pod(attacker)
	return [][]byte{s.message(me, everybody, advertisement(me.mac, s.pod("web-a").address))}
}

func forgedSolicit(s *stage) [][]byte {
	return [][]byte{s.message(s.pod(attacker), everybody, solicitation(s.pod("db-a").mac, s.pod("web-a").address))}
}

func routerAdvert(s *stage) [][]byte {
	return [][]byte{s.message(s.pod(attacker), everybody, routerMessage())}
}

// redirect tells a pod to send packets to another Node by the attacker.
func redirect(s *stage) [][]byte {
	me := s.pod(attacker)
	body := slices.Concat(me.address.AsSlice(), s.pod("web-b").address.AsSlice(), option(optionTarget, me.mac[:]))
	return [][]byte{s.message(me, s.pod("web-a"), nd{kind: packet.ICMPv6Redirect, body: body})}
}

// fragmentedND are messages in one fragment, and in two (RFC 6980).
func fragmentedND(s *stage) (all [][]byte) {
	const cut = 256
	me, to := s.pod(attacker), s.pod("web-a")
	for i, m := range []nd{solicitation(me.mac, to.address), advertisement(me.mac, me.address), routerMessage()} {
		all = append(all, packettest.Split(s.message(me, to, m), uint32(2*i+1))...)
		m.body = append(m.body, option(optionMarker, make([]byte, cut-2))...)
		all = append(all, packettest.Split(s.message(me, to, m), uint32(2*i+2), cut)...)
	}
	return all
}

// nearND are messages that may come from another link (RFC 4861, section 7.1).
func nearND(s *stage) [][]byte {
	me, to := s.pod(attacker), s.pod("web-a")
	var all [][]byte
	for _, m := range []nd{solicitation(me.mac, to.address), advertisement(me.mac, me.address)} {
		m.limit = 64
		all = append(all, s.message(me, to, m))
	}
	return all
}

// toAllNodes are the options of a packet to all hosts, in a frame to a MAC.
func (s *stage) toAllNodes(mac [6]byte) packettest.Options {
	me := s.pod(attacker)
	return packettest.Options{EthSrc: me.mac, EthDst: mac, Src: me.address, Dst: allNodes, SrcPort: 40000, DstPort: dbPort, Payload: s.marker}
}

func multicastUDP(s *stage) [][]byte { return [][]byte{s.udp(s.toAllNodes(allNodesMAC))} }
func multicastTCP(s *stage) [][]byte { return [][]byte{s.tcp(s.toAllNodes(allNodesMAC))} }
func unicastUDP(s *stage) [][]byte   { return [][]byte{s.udp(s.toAllNodes(s.pod("db-a").mac))} }
func unicastTCP(s *stage) [][]byte   { return [][]byte{s.tcp(s.toAllNodes(s.pod("db-a").mac))} }
