package filter

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
)

// Tests of header fields. Offsets are from the frame's first byte. shift is 4 for each VLAN tag
// that the expression has named before.

const (
	typeIPv4 = 0x0800
	typeARP  = 0x0806
	typeRARP = 0x8035
	typeIPv6 = 0x86dd

	protoICMP     = 1
	protoIGMP     = 2
	protoTCP      = 6
	protoUDP      = 17
	protoFragment = 44
	protoGRE      = 47
	protoESP      = 50
	protoAH       = 51
	protoICMPv6   = 58
	protoSCTP     = 132
)

// protocols are the names of IP protocol numbers.
var protocols = map[string]uint32{
	"icmp": protoICMP, "igmp": protoIGMP, "tcp": protoTCP, "udp": protoUDP, "gre": protoGRE, "esp": protoESP, "ah": protoAH,
	"icmp6": protoICMPv6, "sctp": protoSCTP,
}

// etherTypes are the names of Ethernet types.
var etherTypes = map[string]uint32{"ip": typeIPv4, "arp": typeARP, "rarp": typeRARP, "ip6": typeIPv6}

// byteAt, halfAt and fieldAt load a number of one, two or size bytes.
func byteAt(off uint32) bpf.Instruction         { return fieldAt(off, 1) }
func halfAt(off uint32) bpf.Instruction         { return fieldAt(off, 2) }
func fieldAt(off uint32, n int) bpf.Instruction { return bpf.LoadAbsolute{Off: off, Size: n} }

func masked(m uint32) bpf.Instruction { return bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: m} }

// etherType matches frames of a type.
func etherType(t, shift uint32) node { return test(bpf.JumpEqual, t, halfAt(12+shift)) }

// ipProto matches IPv4 packets of a protocol.
func ipProto(p, shift uint32) node {
	return and(etherType(typeIPv4, shift), test(bpf.JumpEqual, p, byteAt(23+shift)))
}

// ip6Proto matches IPv6 packets of a protocol, also behind a fragment header.
func ip6Proto(p, shift uint32) node {
	next := func(p uint32) node { return test(bpf.JumpEqual, p, byteAt(20+shift)) }
	fragment := and(next(protoFragment), test(bpf.JumpEqual, p, byteAt(54+shift)))
	return and(etherType(typeIPv6, shift), or(next(p), fragment))
}

func bothProto(p, shift uint32) node { return or(ipProto(p, shift), ip6Proto(p, shift)) }

// direction selects the ends that a test applies to.
type direction string

const (
	either direction = ""
	src    direction = "src"
	dst    direction = "dst"
	both   direction = "src and dst"
)

// ends combines the tests of two ends by the direction.
func (d direction) ends(source, destination node) node {
	switch d {
	case src:
		return source
	case dst:
		return destination
	case both:
		return and(source, destination)
	}
	return or(source, destination)
}

// network matches packets with an end in a network. Without a protocol, IPv4 networks also
// match in ARP.
func network(proto string, d direction, p netip.Prefix, shift uint32) node {
	p = p.Masked()
	at := func(typ, source, destination uint32) node {
		return and(etherType(typ, shift), d.ends(inNetwork(p, source+shift), inNetwork(p, destination+shift)))
	}
	if p.Addr().Is6() {
		return at(typeIPv6, 22, 38)
	}
	switch proto {
	case "ip":
		return at(typeIPv4, 26, 30)
	case "arp":
		return at(typeARP, 28, 38)
	case "rarp":
		return at(typeRARP, 28, 38)
	}
	return anyOf(at(typeIPv4, 26, 30), at(typeARP, 28, 38), at(typeRARP, 28, 38))
}

// inNetwork compares the address at an offset, 32 bits at a time.
func inNetwork(p netip.Prefix, off uint32) node {
	addr := p.Addr().AsSlice()
	var all []node
	for bits := p.Bits(); bits > 0; bits -= 32 {
		mask := ^uint32(0)
		if bits < 32 {
			mask <<= 32 - bits
		}
		load := []bpf.Instruction{fieldAt(off, 4)}
		if mask != ^uint32(0) {
			load = append(load, masked(mask))
		}
		all = append(all, test(bpf.JumpEqual, binary.BigEndian.Uint32(addr), load...))
		addr, off = addr[4:], off+4
	}
	return allOf(all...)
}

// portNumbers matches packets of some protocols (TCP, UDP, SCTP) with a port in a range. Of a
// fragmented datagram, only the first fragment has ports.
func portNumbers(protos []uint32, d direction, from, to, shift uint32) node {
	var four, six []node
	for _, p := range protos {
		four = append(four, test(bpf.JumpEqual, p, byteAt(23+shift)))
		six = append(six, test(bpf.JumpEqual, p, byteAt(20+shift)))
	}
	length := bpf.LoadMemShift{Off: 14 + shift}
	at := func(off uint32) node { // behind a header with its own length
		return between(from, to, length, bpf.LoadIndirect{Off: 14 + shift + off, Size: 2})
	}
	whole := test(bpf.JumpBitsNotSet, 0x1fff, halfAt(20+shift))
	ip := allOf(etherType(typeIPv4, shift), anyOf(four...), whole, d.ends(at(0), at(2)))
	ip6 := allOf(etherType(typeIPv6, shift), anyOf(six...), d.ends(between(from, to, halfAt(54+shift)), between(from, to, halfAt(56+shift))))
	return or(ip, ip6)
}

// between compares a loaded number with two limits.
func between(from, to uint32, load ...bpf.Instruction) node {
	if from == to {
		return test(bpf.JumpEqual, from, load...)
	}
	return and(test(bpf.JumpGreaterOrEqual, from, load...), test(bpf.JumpLessOrEqual, to, load...))
}

// etherHost matches frames with an Ethernet address at an end.
func etherHost(d direction, mac [6]byte) node {
	at := func(off uint32) node {
		return and(test(bpf.JumpEqual, binary.BigEndian.Uint32(mac[2:]), fieldAt(off+2, 4)),
			test(bpf.JumpEqual, uint32(binary.BigEndian.Uint16(mac[:])), halfAt(off)))
	}
	return d.ends(at(6), at(0))
}

// vlanTag matches frames with a VLAN tag; a negative id matches any.
func vlanTag(id int, shift uint32) node {
	n := anyOf(etherType(0x8100, shift), etherType(0x88a8, shift), etherType(0x9100, shift))
	if id >= 0 {
		n = and(n, test(bpf.JumpEqual, uint32(id), halfAt(14+shift), masked(0xfff)))
	}
	return n
}
