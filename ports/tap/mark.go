package tap

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// A tap carries only bytes, and a packet has no byte for the packet mark. So a port opened with
// Marks writes the mark of an IP packet into its source MAC address. The host does not need that
// address: it accepts packets to its own address, whatever their source.
//
//	byte 0    1    2    3    4    5
//	   +----+----+----+----+----+----+
//	   | 02 | 61 |     mark, 32 bits |     source address of a marked packet
//	   +----+----+----+----+----+----+
//
// The host's rules turn the address into a mark and back (package host). Frames without a mark
// stay unchanged, with one exception. A frame whose own source address looks like a mark gets
// mark 0, so that no pod can mark its packets.

// markPrefix is the start of source addresses that are marks: locally administered, unicast.
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

// showMark reads a received frame's mark from its source address, and writes the device's own
// address there.
func showMark(f *packet.Frame, own *packet.MAC) {
	if f.Len() >= packet.EthernetLen && saysMark(f) {
		f.Mark = binary.BigEndian.Uint32(sourceOf(f)[2:])
		copy(sourceOf(f), own[:])
	}
}
