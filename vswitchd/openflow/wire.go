package openflow

import "encoding/binary"

// Version is the version byte of a message header.
type Version uint8

// The versions that ovs-ofctl and controllers of Open vSwitch negotiate. 1.1 and 1.2 are left out,
// because all known clients accept another version, too.
const (
	V10 Version = 1
	V13 Version = 4
	V14 Version = 5
	V15 Version = 6
)

// Versions are the supported versions, oldest first.
var Versions = []Version{V10, V13, V14, V15}

// String is the version as ovs-ofctl's -O names it.
func (v Version) String() string {
	switch v {
	case V10:
		return "OpenFlow10"
	case V13:
		return "OpenFlow13"
	case V14:
		return "OpenFlow14"
	case V15:
		return "OpenFlow15"
	}
	return "unknown version"
}

// known reports whether the version is supported.
func (v Version) known() bool { return v == V10 || v >= V13 && v <= V15 }

// reader takes values from the front of a message. Beyond the end of the bytes it returns zeros and
// sets short, so a decoder checks once, at its end.
type reader struct {
	b     []byte
	short bool
}

// take returns the next n bytes. They share the message's memory.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, max(0, min(n, 16)))
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) skip(n int) { r.take(n) }

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

// rest takes everything that is left.
func (r *reader) rest() []byte { return r.take(len(r.b)) }

// done returns an error if the body was too short.
func (r *reader) done() error {
	if r.short {
		return fail(BadLength, "the message ends within its fields")
	}
	return nil
}

// writer appends values. A length in front of the counted bytes is set by set16 later.
type writer struct{ b []byte }

func (w *writer) u8(v uint8)      { w.b = append(w.b, v) }
func (w *writer) u16(v uint16)    { w.b = binary.BigEndian.AppendUint16(w.b, v) }
func (w *writer) u32(v uint32)    { w.b = binary.BigEndian.AppendUint32(w.b, v) }
func (w *writer) u64(v uint64)    { w.b = binary.BigEndian.AppendUint64(w.b, v) }
func (w *writer) bytes(b []byte)  { w.b = append(w.b, b...) }
func (w *writer) zeros(n int)     { w.b = append(w.b, make([]byte, n)...) }
func (w *writer) len() int        { return len(w.b) }
func (w *writer) set16(at, v int) { binary.BigEndian.PutUint16(w.b[at:], uint16(v)) }

// pad adds zeros up to a multiple of 8 bytes, counted from start.
func (w *writer) pad(start int) {
	if n := (len(w.b) - start) % 8; n != 0 {
		w.zeros(8 - n)
	}
}

// name writes a string of fixed width, which ends with a zero.
func (w *writer) name(s string, width int) {
	s = s[:min(len(s), width-1)]
	w.bytes([]byte(s))
	w.zeros(width - len(s))
}

// cString is the text before the first zero.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// padded is n rounded up to a multiple of 8.
func padded(n int) int { return (n + 7) &^ 7 }
