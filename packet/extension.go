package packet

import "encoding/binary"

// The extension headers of IPv6 (RFC 8200, section 4) between the fixed header and the transport
// header. They are read as Open vSwitch reads them. Mobility, HIP and Shim6 count as protocols.
// In a fragment that is not the first, reading stops at the fragment header.

// Extensions has the contents of one packet's extension headers.
type Extensions struct {
	Count int   // headers read
	End   int   // offset of the transport header from the fixed header's first byte
	Proto uint8 // of the transport header; 44 for a fragment that is not the first
	Frag  uint8 // as in Layers
	// Fragment is set if there is a fragment header, also one of a whole packet (RFC 6946).
	Fragment bool
	// SourceRoute is set if there is a routing header of type 0 (RFC 5095).
	SourceRoute bool
	// Fit is set if all of them lie in the packet. Otherwise the fields above describe those that
	// do, and Proto and Frag are 0.
	Fit bool
}

// ReadExtensions reads the extension headers of an IPv6 packet. Its fixed header must be present.
func ReadExtensions(b []byte) (x Extensions) {
	next, frag := IPv6(b).NextHeader(), uint8(0)
	for x.End = IPv6Len; isExtension(next) && frag&FragLater == 0; x.Count++ {
		if len(b)-x.End < 8 {
			return x
		}
		h, this := b[x.End:], next
		if extensionLen(h, this) > len(h) {
			return x
		}
		next = h[0]
		x.End += extensionLen(h, this)
		switch this {
		case ProtoFragment:
			x.Fragment, frag = true, ipv6Frag(h)
		case ProtoRouting:
			x.SourceRoute = x.SourceRoute || h[routingType] == 0
		}
	}
	if frag&FragLater != 0 {
		next = ProtoFragment
	}
	x.Proto, x.Frag, x.Fit = next, frag, true
	return x
}

// routingType is the offset of a routing header's type.
const routingType = 2

func isExtension(next uint8) bool {
	switch next {
	case ProtoHopByHop, ProtoRouting, ProtoFragment, ProtoAH, ProtoDestOpts:
		return true
	}
	return false
}

// extensionLen is an extension header's length in bytes. AH has its own unit (RFC 4302, section
// 2.2).
func extensionLen(h []byte, typ uint8) int {
	switch typ {
	case ProtoFragment:
		return 8
	case ProtoAH:
		return (int(h[1]) + 2) * 4
	}
	return (int(h[1]) + 1) * 8
}

// ipv6Frag reads a fragment header (RFC 8200, section 4.5): 13 bits of offset, two reserved, M.
// If all are 0, the packet is whole (RFC 6946).
func ipv6Frag(h []byte) uint8 {
	switch v := binary.BigEndian.Uint16(h[2:]); {
	case v>>3 != 0:
		return FragAny | FragLater
	case v != 0:
		return FragAny
	}
	return 0
}
