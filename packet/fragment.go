package packet

import "encoding/binary"

// FragmentLen is the length of the IPv6 Fragment header.
const FragmentLen = 8

// Fragment describes an IP fragment in its frame: its place in the datagram, and the places of
// its own parts.
//
// An IPv6 fragment begins with headers that every fragment of the datagram repeats, up to and
// with the Fragment header (RFC 8200, section 4.5):
//
//	| Ethernet | IPv6, extension headers | Fragment header |  part of the datagram  |
//	0          L3                        Repeated          Start                    End
//
// IPv4 repeats the whole header, and Repeated equals Start.
type Fragment struct {
	ID       uint32 // Identification; 16 bits for IPv4
	Offset   int    // place of Start in the datagram's payload, in bytes
	More     bool   // others follow it
	Next     uint8  // IPv6: the protocol behind the Fragment header
	NextAt   int    // IPv6: offset of the byte that announces the Fragment header
	Repeated int    // end of the repeated headers, without the Fragment header
	Start    int    // of the fragment's part of the datagram
	End      int
}

// Len is the number of the datagram's bytes in the fragment.
func (g *Fragment) Len() int { return g.End - g.Start }

// ReadFragment reads the fragment in frame b, whose headers l describes. It returns false if the
// packet is not a fragment, as l.Frag does.
func ReadFragment(b []byte, l *Layers) (Fragment, bool) {
	if l.Frag == 0 || l.End == 0 {
		return Fragment{}, false
	}
	if l.EtherType == EtherTypeIPv4 {
		h := IPv4(b[l.L3:])
		start := l.L3 + h.HeaderLen()
		return Fragment{
			ID: uint32(h.ID()), Offset: h.FragmentOffset(), More: h.FlagsOffset()&IPv4MoreFragments != 0,
			Repeated: start, Start: start, End: l.End,
		}, true
	}
	return readFragment6(b[:l.End], l)
}

// readFragment6 finds the first Fragment header. ParseLayers has walked the same headers, so they
// fit.
func readFragment6(b []byte, l *Layers) (Fragment, bool) {
	at := l.L3 + ipv6NextHeader
	off := l.L3 + IPv6Len
	for next := b[at]; isExtension(next) && len(b)-off >= FragmentLen; next = b[at] {
		h := b[off:]
		if next == ProtoFragment {
			v := binary.BigEndian.Uint16(h[2:])
			return Fragment{
				ID: binary.BigEndian.Uint32(h[4:]), Offset: int(v &^ 7), More: v&1 != 0,
				Next: h[0], NextAt: at, Repeated: off, Start: off + FragmentLen, End: len(b),
			}, true
		}
		at = off
		off += extensionLen(h, next)
		if off > len(b) {
			break
		}
	}
	return Fragment{}, false
}
