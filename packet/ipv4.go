package packet

import (
	"encoding/binary"
	"net/netip"
)

// IPv4Len is the length of an IPv4 header without options.
const IPv4Len = 20

// IP protocol numbers that the switch reads (IANA).
const (
	ProtoHopByHop = 0
	ProtoICMP     = 1
	ProtoIGMP     = 2
	ProtoTCP      = 6
	ProtoUDP      = 17
	ProtoRouting  = 43
	ProtoFragment = 44
	ProtoAH       = 51
	ProtoICMPv6   = 58
	ProtoDestOpts = 60
	ProtoSCTP     = 132
)

// Bits of the IPv4 Flags field, at their place in FlagsOffset.
const (
	IPv4DontFragment  = 0x4000
	IPv4MoreFragments = 0x2000
	ipv4OffsetMask    = 0x1fff
)

const (
	ipv4VersionIHL = 0
	ipv4TOS        = 1
	ipv4TotalLen   = 2
	ipv4ID         = 4
	ipv4FlagsOff   = 6
	ipv4TTL        = 8
	ipv4Proto      = 9
	ipv4Checksum   = 10
	ipv4Src        = 12
	ipv4Dst        = 16
)

// IPv4 is an IPv4 header and its payload (RFC 791, section 3.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-------+---------------+-------------------------------+
//	|Version|  IHL  |Type of Service|          Total Length         |
//	+-------+-------+---------------+-----+-------------------------+
//	|         Identification        |Flags|     Fragment Offset     |
//	+---------------+---------------+-----+-------------------------+
//	|  Time to Live |    Protocol   |        Header Checksum        |
//	+---------------+---------------+-------------------------------+
//	|                         Source Address                        |
//	+---------------------------------------------------------------+
//	|                      Destination Address                      |
//	+-----------------------------------------------+---------------+
//	|                    Options                    |    Padding    |
//	+-----------------------------------------------+---------------+
type IPv4 []byte

// Valid reports whether the header, with its options, and everything up to Total
// Length is inside the bytes. It does not check the checksum. The accessors need
// only the first 20 bytes.
func (h IPv4) Valid() bool {
	if len(h) < IPv4Len || h[ipv4VersionIHL]>>4 != 4 {
		return false
	}
	hl, tl := h.HeaderLen(), int(h.TotalLen())
	return hl >= IPv4Len && hl <= tl && tl <= len(h)
}

// HeaderLen is the header's length in bytes: four times IHL.
func (h IPv4) HeaderLen() int { return int(h[ipv4VersionIHL]&0xf) * 4 }

// TOS is the Type of Service byte: DSCP and ECN (RFC 2474, RFC 3168).
func (h IPv4) TOS() uint8 { return h[ipv4TOS] }

// TotalLen is the length of header and payload in bytes.
func (h IPv4) TotalLen() uint16 { return binary.BigEndian.Uint16(h[ipv4TotalLen:]) }

// ID is the Identification field.
func (h IPv4) ID() uint16 { return binary.BigEndian.Uint16(h[ipv4ID:]) }

// FlagsOffset is Flags and Fragment Offset in one: the flags at the top.
func (h IPv4) FlagsOffset() uint16 { return binary.BigEndian.Uint16(h[ipv4FlagsOff:]) }

// FragmentOffset is the fragment's place in the datagram, in bytes.
func (h IPv4) FragmentOffset() int { return int(h.FlagsOffset()&ipv4OffsetMask) * 8 }

// Frag is the header's fragment state in the bits of Layers.Frag.
func (h IPv4) Frag() uint8 {
	switch fo := h.FlagsOffset(); {
	case fo&ipv4OffsetMask != 0:
		return FragAny | FragLater
	case fo&IPv4MoreFragments != 0:
		return FragAny
	}
	return 0
}

// TTL is the Time to Live.
func (h IPv4) TTL() uint8 { return h[ipv4TTL] }

// Proto is the Protocol field.
func (h IPv4) Proto() uint8 { return h[ipv4Proto] }

// Checksum is the Header Checksum field.
func (h IPv4) Checksum() uint16 { return binary.BigEndian.Uint16(h[ipv4Checksum:]) }

// Src is the Source Address.
func (h IPv4) Src() netip.Addr { return netip.AddrFrom4([4]byte(h[ipv4Src:])) }

// Dst is the Destination Address.
func (h IPv4) Dst() netip.Addr { return netip.AddrFrom4([4]byte(h[ipv4Dst:])) }

// SrcBytes is the Source Address in place.
func (h IPv4) SrcBytes() []byte { return h[ipv4Src : ipv4Src+4] }

// DstBytes is the Destination Address in place.
func (h IPv4) DstBytes() []byte { return h[ipv4Dst : ipv4Dst+4] }

// Payload is the bytes behind the header, up to Total Length. The header must be
// Valid.
func (h IPv4) Payload() []byte { return h[h.HeaderLen():h.TotalLen()] }

// Init writes version 4 and a header length of 20 bytes without options.
func (h IPv4) Init() { h[ipv4VersionIHL] = 4<<4 | IPv4Len/4 }

// SetTOS writes the Type of Service byte. Like all setters here it does not
// update the checksum.
func (h IPv4) SetTOS(v uint8) { h[ipv4TOS] = v }

// SetTotalLen writes Total Length, in bytes.
func (h IPv4) SetTotalLen(n uint16) { binary.BigEndian.PutUint16(h[ipv4TotalLen:], n) }

// SetID writes Identification.
func (h IPv4) SetID(v uint16) { binary.BigEndian.PutUint16(h[ipv4ID:], v) }

// SetFlagsOffset writes Flags and Fragment Offset.
func (h IPv4) SetFlagsOffset(v uint16) { binary.BigEndian.PutUint16(h[ipv4FlagsOff:], v) }

// SetTTL writes the Time to Live.
func (h IPv4) SetTTL(v uint8) { h[ipv4TTL] = v }

// SetProto writes the Protocol field.
func (h IPv4) SetProto(v uint8) { h[ipv4Proto] = v }

// SetChecksum writes the Header Checksum field.
func (h IPv4) SetChecksum(v uint16) { binary.BigEndian.PutUint16(h[ipv4Checksum:], v) }

// SetSrc writes the Source Address, which must be IPv4.
func (h IPv4) SetSrc(a netip.Addr) { b := a.As4(); copy(h[ipv4Src:], b[:]) }

// SetDst writes the Destination Address, which must be IPv4.
func (h IPv4) SetDst(a netip.Addr) { b := a.As4(); copy(h[ipv4Dst:], b[:]) }

// ChecksumValid verifies the Header Checksum. HeaderLen must be sound.
func (h IPv4) ChecksumValid() bool {
	if n := h.HeaderLen(); n != IPv4Len {
		return foldsToOnes(h[:n], 0)
	}
	b := (*[IPv4Len]byte)(h) // without options, as most are: the same sum in halves that cannot overflow
	a, c := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
	return fold(a>>32+a&0xffffffff+c>>32+c&0xffffffff+uint64(binary.LittleEndian.Uint32(b[16:]))) == 0xffff
}

// UpdateChecksum computes the Header Checksum from the bytes and writes it.
// HeaderLen must be sound.
func (h IPv4) UpdateChecksum() {
	h.SetChecksum(0)
	h.SetChecksum(^Sum(h[:h.HeaderLen()], 0))
}

// PseudoSum is the sum over the pseudo header for a payload of n bytes
// (RFC 9293, section 3.1).
func (h IPv4) PseudoSum(proto uint8, n int) uint16 {
	a := binary.BigEndian.Uint64((*[8]byte)(h[ipv4Src:])[:])
	return fold(a>>32 + a&0xffffffff + uint64(proto) + uint64(n))
}
