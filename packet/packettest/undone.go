package packettest

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// Undone is the frame of a TCP or UDP packet from a sender that relies on offload. The checksum
// is partial. Unless size is 0, the frame is to be cut into segments with size bytes of payload.
func Undone(b []byte, size int) *packet.Frame {
	f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	f.SetBytes(b)
	l := packet.ParseLayers(f.Bytes())
	at := 16
	if l.Proto == packet.ProtoUDP {
		at = 6
	}
	binary.BigEndian.PutUint16(f.Bytes()[l.L4+at:], l.PseudoSum(f.Bytes(), l.End-l.L4))
	f.Offload = packet.Offload{
		ChecksumPartial: true, ChecksumStart: uint16(l.L4), ChecksumOffset: uint16(at), SegmentSize: uint16(size),
	}
	return f
}

// Cut are the segments of an Undone frame, each in a frame of its own without offload work. It panics
// if the frame cannot be cut.
func Cut(f *packet.Frame) (all []*packet.Frame) {
	l := packet.ParseLayers(f.Bytes())
	s, ok := packet.NewSegments(f, &l)
	if !ok {
		panic("packettest: a frame that cannot be cut")
	}
	for s.More() {
		g := packet.NewFrame(make([]byte, 2048), nil)
		s.Next(g)
		all = append(all, g)
	}
	return all
}
