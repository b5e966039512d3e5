package conntrack

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// shown is the tuple that a packet shows and where it stands in the frame. For
// an ICMP error that is the quoted packet, and the key is that of an answer to
// it.
type shown struct {
	key         key
	related     bool
	l3, l4, end int // of the packet the key was read from; end as far as it is there
}

// read finds the packet's key. It reports false for what conntrack cannot
// track (CT-6): no IP packet, lengths that do not fit, ports of 0, ICMP types
// that are neither request, reply nor error, errors that cannot be true, and
// fragments, which can only be tracked as part of their datagram (frag.go).
func (s *shown) read(b []byte, l *packet.Layers, zone uint16) bool {
	if l.L4 == 0 || l.Frag != 0 {
		return false
	}
	s.l3, s.l4, s.end = l.L3, l.L4, l.End
	k := &s.key
	k.zone = zone
	if l.EtherType == packet.EtherTypeIPv4 && l.L4 == l.L3+packet.IPv4Len && (l.Proto == packet.ProtoTCP || l.Proto == packet.ProtoUDP) {
		return k.readPlain(b[l.L3:], l.Proto)
	}
	switch l.EtherType {
	case packet.EtherTypeIPv4:
		k.readIPv4(packet.IPv4(b[l.L3:]))
	case packet.EtherTypeIPv6:
		k.readIPv6(packet.IPv6(b[l.L3:]), l.Proto)
	default:
		return false
	}
	p := b[l.L4:l.End]
	if k.icmp() && icmpError(k.proto, p[0]) {
		outer := *k
		return believable(&outer, packet.ICMP(p)) && s.readQuoted(b, l.L4+packet.ICMPLen, &outer)
	}
	return k.readPorts(p)
}

// readPlain reads what most packets are, TCP or UDP behind an IPv4 header without
// options, in fewer steps than the functions below.
func (k *key) readPlain(b []byte, proto uint8) bool {
	h := (*[packet.IPv4Len + 4]byte)(b)
	addrs, ports := binary.BigEndian.Uint64(h[12:]), binary.BigEndian.Uint32(h[packet.IPv4Len:])
	k.src.hi, k.src.lo, k.dst.hi, k.dst.lo = 0, addrs>>32, 0, addrs&0xffffffff
	k.srcPort, k.dstPort = uint16(ports>>16), uint16(ports)
	k.proto, k.family = proto, ipv4
	return k.srcPort != 0 && k.dstPort != 0
}

func (k *key) readIPv4(h packet.IPv4) {
	k.family, k.proto = ipv4, h.Proto()
	k.src, k.dst = makeAddress(h.SrcBytes()), makeAddress(h.DstBytes())
}

func (k *key) readIPv6(h packet.IPv6, proto uint8) {
	k.family, k.proto = ipv6, proto
	k.src, k.dst = makeAddress(h.SrcBytes()), makeAddress(h.DstBytes())
}

// readPorts reads the ports from a transport header of at least 8 bytes, and
// says whether the protocol can be tracked with them.
func (k *key) readPorts(p []byte) bool {
	switch k.proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
		k.srcPort, k.dstPort = binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:])
		return k.srcPort != 0 && k.dstPort != 0
	case packet.ProtoICMP, packet.ProtoICMPv6:
		h := packet.ICMP(p)
		k.srcPort = h.ID()
		k.dstPort = uint16(h.Type())<<8 | uint16(h.Code())
		ours := (k.proto == packet.ProtoICMP) == (k.family == ipv4)
		return ours && h.Code() == 0 && answerType(k.proto, h.Type()) != h.Type()
	}
	return true
}

// sound verifies the checksums of a packet that read has accepted. A transport
// checksum that the sender left to hardware is not there to be verified
// (CT-8).
func sound(f *packet.Frame, l *packet.Layers) bool {
	b := f.Bytes()
	if l.EtherType == packet.EtherTypeIPv4 && !packet.IPv4(b[l.L3:]).ChecksumValid() {
		return false
	}
	return f.Offload.ChecksumPartial || l.L4Valid(b)
}
