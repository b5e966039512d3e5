package tuple

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// Writing a tuple into a frame. A checksum is changed only by the difference (RFC 1624), so a
// corrupted payload stays visible. The caller recomputes two checksums: SCTP's CRC, and that of
// an ICMP error whose quoted packet changes. Both were verified when the packet came.

// Rewrite changes the addresses, ports and checksums of the packet in frame b from those of one
// key to those of another. It changes no lengths. A quoted packet may be cut off after 8 bytes of
// transport header. If partial is set, the checksum field holds only the sum of the pseudo
// header.
func (s *Packet) Rewrite(b []byte, from, to *Key, partial bool) {
	RewriteAddresses(b[s.L3:], from, to)
	p := b[s.L4:s.End]
	rewriteChecksum(p, from, to, partial)
	switch to.Proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
		binary.BigEndian.PutUint16(p, to.SrcPort)
		binary.BigEndian.PutUint16(p[2:], to.DstPort)
	case packet.ProtoICMP, packet.ProtoICMPv6:
		packet.ICMP(p).SetID(to.SrcPort)
		if blank(p) { // the sum of zeros is +0, which adjusting never gives
			packet.ICMP(p).SetChecksum(0xffff)
		}
	}
}

// blank says whether all bytes are zero. That is an echo reply with identifier 0 and an empty or
// zero payload, whose checksum has become 0.
func blank(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

// RewriteAddresses changes the addresses of a network header from those of one key
// to those of another, and the checksum of IPv4 with them.
func RewriteAddresses(h []byte, from, to *Key) {
	if to.Family == IPv6 {
		ip := packet.IPv6(h)
		to.Src.put(ip.SrcBytes())
		to.Dst.put(ip.DstBytes())
		return
	}
	ip := packet.IPv4(h)
	to.Src.put(ip.SrcBytes())
	to.Dst.put(ip.DstBytes())
	ip.SetChecksum(updateAddresses(ip.Checksum(), from, to))
}

// rewriteChecksum changes the checksum of the transport header in p, if it has one
// and the packet was not cut off before it.
func rewriteChecksum(p []byte, from, to *Key, partial bool) {
	at, ok := checksumAt(to.Proto)
	if !ok || at+2 > len(p) {
		return
	}
	field := p[at:]
	sum := binary.BigEndian.Uint16(field)
	switch {
	case partial:
		sum = ^updateAddresses(^sum, from, to)
	case to.Proto == packet.ProtoUDP && sum == 0:
		return
	default:
		sum = updatePorts(sum, from, to)
		if to.Proto != packet.ProtoICMP { // no pseudo header
			sum = updateAddresses(sum, from, to)
		}
	}
	if to.Proto == packet.ProtoUDP && !partial {
		sum = packet.NonZero(sum)
	}
	binary.BigEndian.PutUint16(field, sum)
}

// checksumAt is the offset of a transport header's Internet checksum.
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

func updateAddresses(sum uint16, from, to *Key) uint16 {
	if from.Family == IPv4 {
		sum = packet.Update32(sum, uint32(from.Src.Lo), uint32(to.Src.Lo))
		return packet.Update32(sum, uint32(from.Dst.Lo), uint32(to.Dst.Lo))
	}
	sum = packet.Update128(sum, from.Src.bytes(), to.Src.bytes())
	return packet.Update128(sum, from.Dst.bytes(), to.Dst.bytes())
}

// bytes is the address as an IPv6 header has it.
func (a Address) bytes() (b [16]byte) {
	a.put(b[:])
	return b
}

// updatePorts updates a sum for changed ports, or for ICMP's identifier. ICMP's type and code
// stay.
func updatePorts(sum uint16, from, to *Key) uint16 {
	sum = packet.Update16(sum, from.SrcPort, to.SrcPort)
	if to.ICMP() {
		return sum
	}
	return packet.Update16(sum, from.DstPort, to.DstPort)
}
