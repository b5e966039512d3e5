package packet

import (
	"encoding/binary"
	"net/netip"
)

// IPv6Len is the length of the fixed IPv6 header.
const IPv6Len = 40

// ipv6LabelMask is the flow label's 20 bits in the header's first word.
const ipv6LabelMask = 0xfffff

const (
	ipv6First      = 0
	ipv6PayloadLen = 4
	ipv6NextHeader = 6
	ipv6HopLimit   = 7
	ipv6Src        = 8
	ipv6Dst        = 24
)

// IPv6 is an IPv6 header and what follows it (RFC 8200, section 3).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+---------------+---------------------------------------+
//	|Version| Traffic Class |              Flow Label               |
//	+-------+---------------+-------+---------------+---------------+
//	|         Payload Length        |  Next Header  |   Hop Limit   |
//	+-------------------------------+---------------+---------------+
//	|                                                               |
//	+                                                               +
//	|                                                               |
//	+                         Source Address                        +
//	|                                                               |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                                                               |
//	+                                                               +
//	|                                                               |
//	+                      Destination Address                      +
//	|                                                               |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
type IPv6 []byte

// Valid reports whether the fixed header and everything up to Payload Length is
// inside the bytes. Jumbograms (RFC 2675) are not supported. The accessors need
// only the first 40 bytes.
func (h IPv6) Valid() bool {
	return len(h) >= IPv6Len && h[ipv6First]>>4 == 6 && IPv6Len+int(h.PayloadLen()) <= len(h)
}

// TrafficClass is DSCP and ECN.
func (h IPv6) TrafficClass() uint8 { return uint8(h.first() >> 20) }

// FlowLabel is the 20-bit Flow Label.
func (h IPv6) FlowLabel() uint32 { return h.first() & ipv6LabelMask }

// PayloadLen is the length behind the fixed header, in bytes.
func (h IPv6) PayloadLen() uint16 { return binary.BigEndian.Uint16(h[ipv6PayloadLen:]) }

// NextHeader is the type of the next header: a protocol or an extension header.
func (h IPv6) NextHeader() uint8 { return h[ipv6NextHeader] }

// HopLimit is the Hop Limit.
func (h IPv6) HopLimit() uint8 { return h[ipv6HopLimit] }

// Src is the Source Address.
func (h IPv6) Src() netip.Addr { return netip.AddrFrom16([16]byte(h[ipv6Src:])) }

// Dst is the Destination Address.
func (h IPv6) Dst() netip.Addr { return netip.AddrFrom16([16]byte(h[ipv6Dst:])) }

// SrcBytes is the Source Address in place.
func (h IPv6) SrcBytes() []byte { return h[ipv6Src : ipv6Src+16] }

// DstBytes is the Destination Address in place.
func (h IPv6) DstBytes() []byte { return h[ipv6Dst : ipv6Dst+16] }

// Payload is the bytes behind the fixed header, up to Payload Length. The header
// must be Valid.
func (h IPv6) Payload() []byte { return h[IPv6Len : IPv6Len+int(h.PayloadLen())] }

// SetFirst writes version 6, the traffic class and the flow label.
func (h IPv6) SetFirst(class uint8, label uint32) {
	binary.BigEndian.PutUint32(h[ipv6First:], 6<<28|uint32(class)<<20|label&ipv6LabelMask)
}

// SetPayloadLen writes Payload Length, in bytes.
func (h IPv6) SetPayloadLen(n uint16) { binary.BigEndian.PutUint16(h[ipv6PayloadLen:], n) }

// SetNextHeader writes Next Header.
func (h IPv6) SetNextHeader(p uint8) { h[ipv6NextHeader] = p }

// SetHopLimit writes Hop Limit.
func (h IPv6) SetHopLimit(v uint8) { h[ipv6HopLimit] = v }

// SetSrc writes the Source Address.
func (h IPv6) SetSrc(a netip.Addr) { b := a.As16(); copy(h[ipv6Src:], b[:]) }

// SetDst writes the Destination Address.
func (h IPv6) SetDst(a netip.Addr) { b := a.As16(); copy(h[ipv6Dst:], b[:]) }

// PseudoSum is the sum over the pseudo header for a payload of n bytes
// (RFC 8200, section 8.1).
func (h IPv6) PseudoSum(proto uint8, n int) uint16 {
	return Sum(h[ipv6Src:ipv6Dst+16], fold(uint64(proto)+uint64(n)))
}

func (h IPv6) first() uint32 { return binary.BigEndian.Uint32(h[ipv6First:]) }
