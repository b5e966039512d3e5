package packettest

import (
	"slices"

	"github.com/antrail/antrail/packet"
)

// Extend6 inserts extension headers behind the IPv6 header of an untagged frame, in order. The
// first byte of each is its own type; in the frame it becomes the type of the next header.
func Extend6(frame []byte, headers ...[]byte) []byte {
	const l3 = packet.EthernetLen
	all, next := []byte(nil), packet.IPv6(frame[l3:]).NextHeader()
	for _, header := range slices.Backward(headers) {
		this := slices.Clone(header)
		this[0], next = next, header[0]
		all = slices.Concat(this, all)
	}
	b := slices.Concat(frame[:l3+packet.IPv6Len], all, frame[l3+packet.IPv6Len:])
	h := packet.IPv6(b[l3:])
	h.SetNextHeader(next)
	h.SetPayloadLen(h.PayloadLen() + uint16(len(all)))
	return b
}
