package packettest

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/antrail/antrail/packet"
)

// Split cuts the datagram in a frame into fragments with the Identification id,
// at the given offsets of its payload, which are multiples of 8. Each repeats an
// IPv6 datagram's hop-by-hop and routing headers (RFC 8200, section 4.5). Other
// extension headers are payload.
func Split(frame []byte, id uint32, cuts ...int) [][]byte {
	l := packet.ParseLayers(frame)
	start, nextAt := unfragmentable(frame, &l)
	g := packet.Fragment{ID: id, NextAt: nextAt, Repeated: start, Start: start}
	var out [][]byte
	for _, to := range append(slices.Clone(cuts), l.End-start) {
		g.Offset, g.End, g.More = g.Start-start, start+to, start+to < l.End
		if nextAt != 0 {
			out = append(out, fragment6(frame, l.L3, &g))
		} else {
			out = append(out, fragment4(frame, l.L3, &g))
		}
		g.Start = g.End
	}
	return out
}

// fragment4 is the fragment g of a frame. Its Start and End are offsets in the
// frame.
func fragment4(frame []byte, l3 int, g *packet.Fragment) []byte {
	b := slices.Concat(frame[:g.Repeated], frame[g.Start:g.End])
	h := packet.IPv4(b[l3:])
	h.SetTotalLen(uint16(len(h)))
	h.SetID(uint16(g.ID))
	flags := uint16(g.Offset / 8)
	if g.More {
		flags |= packet.IPv4MoreFragments
	}
	h.SetFlagsOffset(flags)
	h.UpdateChecksum()
	return b
}

// fragment6 is fragment4 for IPv6.
func fragment6(frame []byte, l3 int, g *packet.Fragment) []byte {
	header := make([]byte, packet.FragmentLen)
	header[0] = frame[g.NextAt]
	binary.BigEndian.PutUint16(header[2:], uint16(g.Offset))
	if g.More {
		header[3] |= 1
	}
	binary.BigEndian.PutUint32(header[4:], g.ID)
	b := slices.Concat(frame[:g.Repeated], header, frame[g.Start:g.End])
	b[g.NextAt] = packet.ProtoFragment
	h := packet.IPv6(b[l3:])
	h.SetPayloadLen(uint16(len(h) - packet.IPv6Len))
	return b
}

// unfragmentable is the offset of the part of a datagram that is cut. For IPv6,
// it also returns the offset of the byte with the type of that part's first
// header.
func unfragmentable(b []byte, l *packet.Layers) (start, nextAt int) {
	if l.EtherType == packet.EtherTypeIPv4 {
		return l.L3 + packet.IPv4(b[l.L3:]).HeaderLen(), 0
	}
	start, nextAt = l.L3+packet.IPv6Len, l.L3+6
	for b[nextAt] == packet.ProtoHopByHop || b[nextAt] == packet.ProtoRouting {
		start, nextAt = start+(int(b[start+1])+1)*8, start
	}
	return start, nextAt
}

// Join reassembles the fragments of one datagram, in any order, with the headers
// of the first. An IPv4 datagram gets the Identification 0. It is nil if they are
// not exactly the datagram. It shares no code with the product, because tests
// compare the two.
func Join(fragments [][]byte) []byte {
	var first packet.Fragment
	var whole []byte
	payload, have := map[int][]byte{}, 0
	for _, b := range fragments {
		l := packet.ParseLayers(b)
		g, ok := packet.ReadFragment(b, &l)
		if !ok || g.Len() == 0 || payload[g.Offset] != nil {
			return nil
		}
		payload[g.Offset] = b[g.Start:g.End]
		have++
		if g.Offset == 0 {
			first, whole = g, bytes.Clone(b[:g.Repeated])
		}
	}
	if whole == nil {
		return nil
	}
	for off := 0; payload[off] != nil; have-- {
		whole = append(whole, payload[off]...)
		off += len(payload[off])
	}
	if have != 0 {
		return nil
	}
	return finish(whole, &first)
}

// finish sets the lengths of a reassembled datagram.
func finish(b []byte, first *packet.Fragment) []byte {
	l := packet.ParseLayers(b[:min(len(b), packet.EthernetLen+2*packet.VLANLen+packet.IPv6Len)])
	if l.EtherType == packet.EtherTypeIPv6 {
		packet.IPv6(b[l.L3:]).SetPayloadLen(uint16(len(b) - l.L3 - packet.IPv6Len))
		b[first.NextAt] = first.Next
		return b
	}
	h := packet.IPv4(b[l.L3:])
	h.SetTotalLen(uint16(len(h)))
	h.SetID(0)
	h.SetFlagsOffset(0)
	h.UpdateChecksum()
	return b
}
