package conntrack

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// Writing a translation into a frame. A checksum is changed by the difference
// only (RFC 1624), so that a corrupted payload stays visible; only SCTP's CRC,
// and the checksum of an ICMP error whose quoted packet changes, are computed
// anew, both of which were verified when the packet came.

// translate rewrites the packet from the tuple it shows to the one on the
// connection's other side. It reports whether bytes changed.
func (v *visit) translate() bool {
	if !v.rewrite {
		return false
	}
	b := v.f.Bytes()
	to := &v.m.seen
	if v.related {
		v.translateError(b, to)
		return true
	}
	h := headers{b: b, l3: v.l3, l4: v.l4, end: v.end, partial: v.f.Offload.ChecksumPartial}
	h.rewrite(&v.key, to)
	if v.key.proto == packet.ProtoSCTP && !h.partial {
		v.l.SetL4Checksum(b)
	}
	return true
}

// translateError rewrites an ICMP error (CT-33): the quoted packet becomes
// what its sender sent, and of the error itself each address on a side that
// NAT translates becomes the one that side is known by, whoever sent it.
func (v *visit) translateError(b []byte, to *key) {
	quoted, sent := headers{b: b, l3: v.l3, l4: v.l4, end: v.end}, v.key.reversed()
	quoted.rewrite(&sent, &v.e.keys[1-v.dir])
	outer := key{family: to.family}
	outer.readAddresses(b[v.l.L3:])
	moved := outer
	if to.src != v.key.src {
		moved.src = to.src
	}
	if to.dst != v.key.dst {
		moved.dst = to.dst
	}
	outside := headers{b: b, l3: v.l.L3}
	outside.rewriteAddresses(&outer, &moved)
	v.l.SetL4Checksum(b)
	v.f.Offload.ChecksumPartial = false
}

func (k *key) readAddresses(b []byte) {
	if k.family == ipv4 {
		k.readIPv4(packet.IPv4(b))
		return
	}
	k.readIPv6(packet.IPv6(b), 0)
}

// headers is a packet in frame b that is being rewritten. A quoted one may be
// cut off behind 8 bytes of transport header.
type headers struct {
	b           []byte
	l3, l4, end int
	partial     bool // the checksum field holds the pseudo-header sum only
}

// rewrite changes addresses and ports, with their checksums.
func (h *headers) rewrite(from, to *key) {
	h.rewriteAddresses(from, to)
	h.rewriteChecksum(from, to)
	p := h.b[h.l4:h.end]
	switch to.proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
		binary.BigEndian.PutUint16(p, to.srcPort)
		binary.BigEndian.PutUint16(p[2:], to.dstPort)
	case packet.ProtoICMP, packet.ProtoICMPv6:
		packet.ICMP(p).SetID(to.srcPort)
		if blank(p) { // of zeros alone the sum is +0, which no difference leads to
			packet.ICMP(p).SetChecksum(0xffff)
		}
	}
}

// blank says whether all bytes are zero: an echo reply with identifier 0 and an
// empty or zero payload, whose checksum has become 0.
func blank(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// rewriteAddresses changes the network header.
func (h *headers) rewriteAddresses(from, to *key) {
	if to.family == ipv6 {
		ip := packet.IPv6(h.b[h.l3:])
		to.src.put(ip.SrcBytes())
		to.dst.put(ip.DstBytes())
		return
	}
	ip := packet.IPv4(h.b[h.l3:])
	to.src.put(ip.SrcBytes())
	to.dst.put(ip.DstBytes())
	ip.SetChecksum(updateAddresses(ip.Checksum(), from, to))
}

// rewriteChecksum changes the transport checksum, if there is one and it is
// inside the packet.
func (h *headers) rewriteChecksum(from, to *key) {
	at, ok := checksumAt(to.proto)
	if !ok || h.l4+at+2 > h.end {
		return
	}
	field := h.b[h.l4+at:]
	sum := binary.BigEndian.Uint16(field)
	switch {
	case h.partial:
		sum = ^updateAddresses(^sum, from, to)
	case to.proto == packet.ProtoUDP && sum == 0:
		return
	default:
		sum = updatePorts(sum, from, to)
		if to.proto != packet.ProtoICMP { // no pseudo header
			sum = updateAddresses(sum, from, to)
		}
	}
	if to.proto == packet.ProtoUDP && !h.partial {
		sum = packet.NonZero(sum)
	}
	binary.BigEndian.PutUint16(field, sum)
}

// checksumAt is where a transport header has its Internet checksum.
func checksumAt(proto uint8) (int, bool) {
	switch proto {
	case packet.ProtoTCP:
		return 16, true
	case packet.ProtoUDP:
		return 6, true
	case packet.ProtoICMP, packet.ProtoICMPv6:
		return 2, true
	}
	return 0, false
}

func updateAddresses(sum uint16, from, to *key) uint16 {
	if from.family == ipv4 {
		sum = packet.Update32(sum, uint32(from.src.lo), uint32(to.src.lo))
		return packet.Update32(sum, uint32(from.dst.lo), uint32(to.dst.lo))
	}
	sum = packet.Update128(sum, from.src.bytes(), to.src.bytes())
	return packet.Update128(sum, from.dst.bytes(), to.dst.bytes())
}

// bytes is an IPv6 address as it stands in a header.
func (a address) bytes() (b [16]byte) {
	a.put(b[:])
	return b
}

// updatePorts is for ports, or for ICMP the identifier: type and code stay.
func updatePorts(sum uint16, from, to *key) uint16 {
	sum = packet.Update16(sum, from.srcPort, to.srcPort)
	if to.icmp() {
		return sum
	}
	return packet.Update16(sum, from.dstPort, to.dstPort)
}
