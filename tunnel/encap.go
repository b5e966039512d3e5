package tunnel

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/antrail/antrail/packet"
)

// Encap puts a Geneve header with the VNI f.Tunnel.ID in front of an inner
// frame, and a UDP header in front of that. The UDP source port is SourcePort
// of the inner frame; the UDP checksum is 0 over IPv4 and computed over IPv6
// (RFC 8926, section 3.3), for which f.Tunnel.Src must be what the packet will
// be sent from. With any reason but None the frame is unchanged.
func Encap(f *packet.Frame) Reason {
	src, dst := f.Tunnel.Src, f.Tunnel.Dst
	switch {
	case !src.IsValid() || src.Is4() != dst.Is4() || !dst.IsValid():
		return Addresses
	case !packet.Ethernet(f.Bytes()).Valid():
		return Inner
	case f.Headroom() < Overhead:
		return Headroom
	case f.Len() > math.MaxUint16-Overhead-packet.IPv4Len:
		return TooLong
	}
	port := SourcePort(f.Bytes())
	Geneve(f.Prepend(GeneveLen)).Init(uint32(f.Tunnel.ID))
	f.Prepend(packet.UDPLen)
	h := packet.UDP(f.Bytes())
	h.SetSrcPort(port)
	h.SetDstPort(GenevePort)
	h.SetLength(uint16(len(h)))
	h.SetChecksum(0)
	if !dst.Is4() {
		h.SetChecksum(udp6Checksum(h, src.As16(), dst.As16()))
	}
	return None
}

// udp6Checksum is the checksum of a datagram between two IPv6 addresses; its
// field must be 0.
func udp6Checksum(h packet.UDP, src, dst [16]byte) uint16 {
	var pseudo [packet.IPv6Len]byte
	copy(pseudo[:], src[:])
	copy(pseudo[16:], dst[:])
	binary.BigEndian.PutUint32(pseudo[32:], uint32(len(h)))
	pseudo[39] = packet.ProtoUDP
	return packet.NonZero(packet.Checksum(h, packet.Sum(pseudo[:], 0)))
}

// The range of SourcePort (RFC 6335's dynamic ports).
const (
	firstPort = 49152
	numPorts  = 1 << 14
)

// SourcePort is the outer UDP source port for an inner frame: the same for all
// frames of a flow, including its fragments, and spread over 49152 to 65535
// for different flows, so that multipath routes and receive queues spread them
// too (RFC 8926, section 3.3).
func SourcePort(inner []byte) uint16 {
	l := packet.ParseLayers(inner)
	h := mix(mix(0, uint64(l.Proto)), uint64(l.EtherType))
	switch {
	case l.End == 0 || l.EtherType != packet.EtherTypeIPv4 && l.EtherType != packet.EtherTypeIPv6:
		h = mixBytes(h, inner[:min(2*6, len(inner))])
	case l.EtherType == packet.EtherTypeIPv4:
		ip := packet.IPv4(inner[l.L3:])
		h = mixBytes(mixBytes(h, ip.SrcBytes()), ip.DstBytes())
	default:
		ip := packet.IPv6(inner[l.L3:])
		h = mixBytes(mixBytes(h, ip.SrcBytes()), ip.DstBytes())
	}
	if l.L4 != 0 && l.Frag == 0 && hasPorts(l.Proto) {
		h = mixBytes(h, inner[l.L4:l.L4+4])
	}
	return firstPort + uint16(h>>32%numPorts)
}

func hasPorts(proto uint8) bool {
	return proto == packet.ProtoTCP || proto == packet.ProtoUDP || proto == packet.ProtoSCTP
}

// mix folds the 128-bit product of state and word with an odd constant, which
// carries every bit of v into the middle of the result.
func mix(h, v uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	hi, lo := bits.Mul64(h^v^odd, odd)
	return hi ^ lo
}

// mixBytes mixes in b by words of four bytes, then by single bytes.
func mixBytes(h uint64, b []byte) uint64 {
	for ; len(b) >= 4; b = b[4:] {
		h = mix(h, uint64(binary.BigEndian.Uint32(b)))
	}
	for _, v := range b {
		h = mix(h, uint64(v))
	}
	return h
}
