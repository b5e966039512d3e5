package packet

import (
	"bytes"
	"encoding/binary"
)

// Joining is the inverse of cutting: what the receiver of a card's segments does
// before anybody looks at them (generic receive offload in Linux), so that they
// walk the tables once. Here it is strict: frames are joined only when Segments
// would make the very same frames of the result, so that nobody can tell.

// Train is TCP segments of one connection that follow one another. It looks at
// their frames only; Join makes one frame of them. The zero value has none.
type Train struct {
	head   *Frame // the first segment
	layers Layers // of head
	start  int    // where the payload begins, in each
	size   int    // payload of each but the last
	total  int    // payload of all
	n      int
	ended  bool // nothing can follow the last
	flags  uint16
}

// Len is how many frames the train has.
func (t *Train) Len() int { return t.n }

// Start begins a train with f. When f is nothing to be joined, the train has
// this one frame and takes no other.
func (t *Train) Start(f *Frame) {
	*t = Train{head: f, n: 1, ended: true}
	b := f.Bytes()
	l := ParseLayers(b)
	if !joinable(f, &l) {
		return
	}
	h := TCP(b[l.L4:])
	t.layers, t.flags = l, h.Flags()
	t.start = payloadStart(b, &l)
	t.size = len(b) - t.start
	t.total = t.size
	t.ended = t.size < minSegment || t.flags&(TCPFin|TCPPsh) != 0
}

// Add says whether f is the train's next segment, and if so appends it. The
// checksums of segments that are appended are right.
func (t *Train) Add(f *Frame) bool {
	if t.ended || f.Tunnel != t.head.Tunnel || f.Mark != t.head.Mark {
		return false
	}
	b := f.Bytes()
	l := ParseLayers(b)
	n := len(b) - t.start
	if !joinable(f, &l) || l.L3 != t.layers.L3 || l.L4 != t.layers.L4 || n <= 0 || n > t.size ||
		t.start-t.layers.L3+t.total+n > 65535 || !t.sameNetwork(b) || !t.sameTransport(b) || !t.sound(b) {
		return false
	}
	last := TCP(b[l.L4:]).Flags() & (TCPFin | TCPPsh)
	t.flags |= last
	t.ended = n < t.size || last != 0
	t.total += n
	t.n++
	return true
}

// joinable says whether a frame is a whole TCP segment with payload, without
// padding and without flags that mean more than its bytes.
func joinable(f *Frame, l *Layers) bool {
	b := f.Bytes()
	if !f.Offload.None() || l.Proto != ProtoTCP || l.L4 == 0 || l.Frag != 0 || l.End != len(b) {
		return false
	}
	return TCP(b[l.L4:]).Flags()&^(TCPPsh|TCPFin|TCPCwr|TCPEce) == TCPAck && payloadStart(b, l) < len(b)
}

// sound verifies the checksums of b, whose headers are where those of head are,
// and before the first that is appended those of head. It is asked last: most
// frames have nothing to be joined with.
func (t *Train) sound(b []byte) bool {
	return (t.n > 1 || soundSegment(t.head.Bytes(), t.layers)) && soundSegment(b, t.layers)
}

// soundSegment verifies the checksums of a segment that fills its frame.
func soundSegment(b []byte, l Layers) bool {
	l.End = len(b)
	return (l.EtherType != EtherTypeIPv4 || IPv4(b[l.L3:]).ChecksumValid()) && l.L4Valid(b)
}

// sameNetwork compares what lies in front of the TCP header: only lengths, the
// IPv4 checksum and the identification may differ, the latter by one for each
// segment.
func (t *Train) sameNetwork(b []byte) bool {
	a, l := t.head.Bytes(), &t.layers
	if !bytes.Equal(a[:l.L3], b[:l.L3]) {
		return false
	}
	a, b = a[l.L3:l.L4], b[l.L3:l.L4]
	if l.EtherType == EtherTypeIPv6 {
		return bytes.Equal(a[:ipv6PayloadLen], b[:ipv6PayloadLen]) && bytes.Equal(a[ipv6NextHeader:], b[ipv6NextHeader:])
	}
	return bytes.Equal(a[:ipv4TotalLen], b[:ipv4TotalLen]) && IPv4(b).ID() == IPv4(a).ID()+uint16(t.n) &&
		bytes.Equal(a[ipv4FlagsOff:ipv4Checksum], b[ipv4FlagsOff:ipv4Checksum]) && bytes.Equal(a[ipv4Src:], b[ipv4Src:])
}

// sameTransport compares the TCP headers: the sequence number goes on, and of
// the flags only those differ that Segments sets on one segment alone.
func (t *Train) sameTransport(b []byte) bool {
	x, y := TCP(t.head.Bytes()[t.layers.L4:t.start]), TCP(b[t.layers.L4:t.start])
	const first, last = TCPCwr, TCPFin | TCPPsh
	return x.SrcPort() == y.SrcPort() && x.DstPort() == y.DstPort() &&
		y.Seq() == x.Seq()+uint32(t.total) && x.Ack() == y.Ack() && x.HeaderLen() == y.HeaderLen() &&
		y.Flags()&^last == x.Flags()&^first && x.Window() == y.Window() &&
		binary.BigEndian.Uint16(x[tcpUrgent:]) == binary.BigEndian.Uint16(y[tcpUrgent:]) && bytes.Equal(x[TCPLen:], y[TCPLen:])
}

// Join makes one frame to be segmented of the train's frames, which are the same
// that it was made of. False, f not to be used, when f's buffer is too short or
// there is only one frame.
func (t *Train) Join(f *Frame, frames []*Frame) bool {
	f.Reset()
	if t.n < 2 || len(frames) != t.n || !f.SetLen(t.start+t.total) {
		return false
	}
	b := f.Bytes()
	at := copy(b, t.head.Bytes())
	for _, g := range frames[1:] {
		at += copy(b[at:], g.Bytes()[t.start:])
	}
	l := t.layers
	l.End = len(b)
	if l.EtherType == EtherTypeIPv6 {
		IPv6(b[l.L3:]).SetPayloadLen(uint16(len(b) - l.L3 - IPv6Len))
	} else {
		ip := IPv4(b[l.L3:])
		ip.SetTotalLen(uint16(len(ip)))
		ip.UpdateChecksum()
	}
	h := TCP(b[l.L4:])
	h.SetFlags(t.flags)
	h.SetChecksum(l.PseudoSum(b, len(h)))
	f.Offload = Offload{ChecksumPartial: true, ChecksumStart: uint16(l.L4), ChecksumOffset: tcpChecksum, SegmentSize: uint16(t.size)}
	f.Tunnel, f.Mark = t.head.Tunnel, t.head.Mark
	return true
}
