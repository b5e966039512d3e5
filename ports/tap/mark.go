package tap

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// A tap carries bytes and nothing beside them, and the packet mark is no byte of a
// packet. So a port that was opened with Marks writes the mark of an IP packet into its
// source address. Nobody behind a tap needs that address: the host takes what is sent to
// its own address, whatever its source.
//
//	byte 0    1    2    3    4    5
//	   +----+----+----+----+----+----+
//	   | 02 | 61 |     mark, 32 bits |     source address of a marked packet
//	   +----+----+----+----+----+----+
//
// The host's rules turn the address into a mark and back (package host). Frames without a
// mark are left as they are, but for one whose own source address would say a mark. It
// then says mark 0, so that no pod can mark its packets.

// markPrefix begins the source addresses that are marks: locally administered,
// of one station.
const markPrefix = 0x0261

// MarkMAC is the source address of an IP packet with this mark.
func MarkMAC(mark uint32) (mac [6]byte) {
	binary.BigEndian.PutUint16(mac[:], markPrefix)
	binary.BigEndian.PutUint32(mac[2:], mark)
	return mac
}

// sourceOf is the source address of a frame.
func sourceOf(f *packet.Frame) []byte { return f.Bytes()[6:12] }

// saysMark reports whether a frame's source address is a mark.
func saysMark(f *packet.Frame) bool { return binary.BigEndian.Uint16(sourceOf(f)) == markPrefix }

// hideMark writes a frame's mark into its source address.
func hideMark(f *packet.Frame) {
	if f.Mark != 0 || saysMark(f) {
		mac := MarkMAC(f.Mark)
		copy(sourceOf(f), mac[:])
	}
}

// showMark reads a received frame's mark out of its source address, and puts
// the device's own there.
func showMark(f *packet.Frame, own *packet.MAC) {
	if f.Len() >= packet.EthernetLen && saysMark(f) {
		f.Mark = binary.BigEndian.Uint32(sourceOf(f)[2:])
		copy(sourceOf(f), own[:])
	}
}
