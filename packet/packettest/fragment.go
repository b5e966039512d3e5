package packettest

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/antrail/antrail/packet"
)

// Split cuts the datagram in a frame into fragments with the Identification id,
// at the given offsets of its payload, which are multiples of 8. An IPv6
// datagram's hop-by-hop and routing headers are repeated in each (RFC 8200,
// section 4.5); its other extension headers are payload.
func Split(frame []byte, id uint32, cuts ...int) [][]byte {
	l := packet.ParseLayers(frame)
	start, nextAt := unfragmentable(frame, &l)
	cuts = append(slices.Clone(cuts), l.End-start)
	var out [][]byte
	from := 0
	for i, to := range cuts {
		offset := uint16(from)
		b := bytes.Clone(frame[:start])
		if nextAt != 0 {
			b[nextAt] = packet.ProtoFragment
			b = append(b, frame[nextAt], 0)
			b = binary.BigEndian.AppendUint16(b, offset|more(i+1 < len(cuts), 1))
			b = binary.BigEndian.AppendUint32(b, id)
			b = append(b, frame[start+from:start+to]...)
			packet.IPv6(b[l.L3:]).SetPayloadLen(uint16(len(b) - l.L3 - packet.IPv6Len))
		} else {
			b = append(b, frame[start+from:start+to]...)
			h := packet.IPv4(b[l.L3:])
			h.SetTotalLen(uint16(len(h)))
			h.SetID(uint16(id))
			h.SetFlagsOffset(offset/8 | more(i+1 < len(cuts), packet.IPv4MoreFragments))
			h.UpdateChecksum()
		}
		out = append(out, b)
		from = to
	}
	return out
}

// more is the given flag when others follow.
func more(follow bool, flag uint16) uint16 {
	if follow {
		return flag
	}
	return 0
}

// unfragmentable is where the part of a datagram begins that is cut, and, for
// IPv6, where the byte is that announces its first header.
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

// Join puts the fragments of one datagram together, whatever their order, with
// the headers of the first; an IPv4 datagram gets the Identification 0. It is
// nil when they are not exactly the datagram. As written for tests, it shares
// nothing with what it is compared with.
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

// finish sets the lengths of a datagram that was put together.
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
