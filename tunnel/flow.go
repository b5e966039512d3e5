package tunnel

import (
	"encoding/binary"
	"math/bits"

	"github.com/antrail/antrail/packet"
)

// FlowHash is a hash of an inner frame whose headers are at l. All frames of a flow, fragments
// included, have the same hash; different flows spread over all values. It chooses the outer UDP
// source port, so that multipath routes and receive queues spread flows too (RFC 8926, section
// 3.3).
func FlowHash(inner []byte, l *packet.Layers) uint32 {
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
	return uint32(h >> 32)
}

func hasPorts(proto uint8) bool {
	return proto == packet.ProtoTCP || proto == packet.ProtoUDP || proto == packet.ProtoSCTP
}

// mix folds the 128-bit product of state and word with an odd constant. The product carries every
// bit of v into the middle of the result.
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
