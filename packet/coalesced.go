package packet

import (
	"bytes"
	"encoding/binary"
)

// Coalescing is the inverse of segmentation. The receiver of a card's segments does it early
// (generic receive offload in Linux), so that they walk the tables once. Here it is strict:
// frames are joined only if Segments would make exactly the same frames again.

// maxCoalesced is the largest number of coalesced segments: AdmitOffload accepts as many of any
// length.
const maxCoalesced = fewSegments

// Coalesced is consecutive TCP segments of one connection, or datagrams of one UDP flow. It keeps
// slices of their bytes, which must not change until Join has made one frame of them. The caller
// compares everything outside the bytes (Frame.Tunnel, Frame.Mark). The zero value has no segment
// and accepts only TCP.
type Coalesced struct {
	// Datagrams allows datagrams, too: of equal length, except a shorter last one, as Linux's
	// UDP_SEGMENT makes them (udp(7)).
	Datagrams bool

	head   []byte // the first segment
	layers Layers // of head
	start  int    // offset of the payload, in each
	size   int    // payload of each but the last
	total  int    // payload of all
	n      int
	ended  bool // nothing can follow the last
	flags  uint16
	parts  [maxCoalesced][]byte // the payloads
}

// Len returns the number of segments.
func (t *Coalesced) Len() int { return t.n }

// Proto is the transport protocol of the segments.
func (t *Coalesced) Proto() uint8 { return t.layers.Proto }

// Start begins with the bytes of a frame without pending offload work. If the frame cannot be
// joined with others, t holds only this frame.
func (t *Coalesced) Start(b []byte) {
	t.head, t.n, t.ended = b, 1, true
	l := ParseLayers(b)
	if !t.joinable(b, &l) {
		return
	}
	t.layers, t.flags = l, flagsOf(b, &l)
	t.start = payloadStart(b, &l)
	t.parts[0] = b[t.start:]
	t.size = len(b) - t.start
	t.total = t.size
	t.ended = t.flags&(TCPFin|TCPPsh) != 0
}

// flagsOf are the TCP flags of a segment; 0 for a datagram.
func flagsOf(b []byte, l *Layers) uint16 {
	if l.Proto != ProtoTCP {
		return 0
	}
	return TCP(b[l.L4:]).Flags()
}

// Add appends b and returns true if b is the next segment. It verifies the checksums of segments
// that it appends.
func (t *Coalesced) Add(b []byte) bool {
	n := len(b) - t.start
	if t.ended || t.n == maxCoalesced || n <= 0 || n > t.size || t.start-t.layers.L3+t.total+n > 65535 ||
		!t.sameNetwork(b) || !t.sameTransport(b) || !t.sound(b) {
		return false
	}
	last := flagsOf(b, &t.layers) & (TCPFin | TCPPsh)
	t.flags |= last
	t.ended = n < t.size || last != 0
	t.parts[t.n] = b[t.start:]
	t.total += n
	t.n++
	return true
}

// joinable reports whether a frame is a whole TCP segment with payload, without padding and
// without flags that concern more than its bytes. A datagram needs a checksum, because cutting
// would add one.
func (t *Coalesced) joinable(b []byte, l *Layers) bool {
	if l.L4 == 0 || l.Frag != 0 || l.End != len(b) || payloadStart(b, l) >= len(b) {
		return false
	}
	switch l.Proto {
	case ProtoTCP:
		return TCP(b[l.L4:]).Flags()&^(TCPPsh|TCPFin|TCPCwr|TCPEce) == TCPAck
	case ProtoUDP:
		return t.Datagrams && summed(b[l.L4:])
	}
	return false
}

// summed reports whether a datagram fills its packet and has a checksum.
func summed(h UDP) bool { return int(h.Length()) == len(h) && h.Checksum() != 0 }

// sound verifies the checksums of b, whose headers have the same places as head's. Before the
// first append it also verifies those of head. It is called last, because most frames cannot be
// joined anyway.
func (t *Coalesced) sound(b []byte) bool {
	return (t.n > 1 || soundSegment(t.head, t.layers)) && soundSegment(b, t.layers)
}

// soundSegment verifies the checksums of a segment that fills its frame.
func soundSegment(b []byte, l Layers) bool {
	l.End = len(b)
	return (l.EtherType != EtherTypeIPv4 || IPv4(b[l.L3:]).ChecksumValid()) && l.L4Valid(b)
}

// sameNetwork compares the bytes before the TCP header. Only lengths, the IPv4 checksum and the
// identification may differ, the latter by one for each segment. So the headers of b have the
// same places as head's. The length of b must be that of its packet.
func (t *Coalesced) sameNetwork(b []byte) bool {
	a, l, n := t.head, &t.layers, len(b)-t.layers.L3
	if !bytes.Equal(a[:l.L3], b[:l.L3]) {
		return false
	}
	a, b = a[l.L3:l.L4], b[l.L3:l.L4]
	if l.EtherType == EtherTypeIPv6 {
		return int(IPv6(b).PayloadLen()) == n-IPv6Len &&
			bytes.Equal(a[:ipv6PayloadLen], b[:ipv6PayloadLen]) && bytes.Equal(a[ipv6NextHeader:], b[ipv6NextHeader:])
	}
	return int(IPv4(b).TotalLen()) == n && IPv4(b).ID() == IPv4(a).ID()+uint16(t.n) && bytes.Equal(a[:ipv4TotalLen], b[:ipv4TotalLen]) &&
		bytes.Equal(a[ipv4FlagsOff:ipv4Checksum], b[ipv4FlagsOff:ipv4Checksum]) && bytes.Equal(a[ipv4Src:], b[ipv4Src:])
}

// sameTransport compares the transport headers. The TCP sequence number must continue. Only those
// flags may differ that Segments sets on one segment alone.
func (t *Coalesced) sameTransport(b []byte) bool {
	if t.layers.Proto == ProtoUDP {
		x, y := UDP(t.head[t.layers.L4:]), UDP(b[t.layers.L4:])
		return x.SrcPort() == y.SrcPort() && x.DstPort() == y.DstPort() && summed(y)
	}
	x, y := TCP(t.head[t.layers.L4:t.start]), TCP(b[t.layers.L4:t.start])
	const first, last = TCPCwr, TCPFin | TCPPsh
	return x.SrcPort() == y.SrcPort() && x.DstPort() == y.DstPort() &&
		y.Seq() == x.Seq()+uint32(t.total) && x.Ack() == y.Ack() && x.HeaderLen() == y.HeaderLen() &&
		y.Flags()&^last == x.Flags()&^first && x.Window() == y.Window() &&
		binary.BigEndian.Uint16(x[tcpUrgent:]) == binary.BigEndian.Uint16(y[tcpUrgent:]) && bytes.Equal(x[TCPLen:], y[TCPLen:])
}

// Join makes one frame of the segments, which cutting turns into the same segments again. If f's
// buffer is too short or there is only one segment, it returns false and f must not be used.
func (t *Coalesced) Join(f *Frame) bool {
	f.Reset()
	if t.n < 2 || !f.SetLen(t.start+t.total) {
		return false
	}
	b := f.Bytes()
	at := copy(b, t.head[:t.start])
	for _, p := range t.parts[:t.n] {
		at += copy(b[at:], p)
	}
	t.joinHeaders(b[:t.start])
	f.Offload = t.Undone()
	return true
}

// JoinInPlace joins without copying. It turns the headers in the first segment's bytes into those
// of the joined frame. That frame is the first segment followed by the payloads in rest. With
// fewer than two segments it changes nothing, and rest is nil.
func (t *Coalesced) JoinInPlace() (rest [][]byte) {
	if t.n < 2 {
		return nil
	}
	t.joinHeaders(t.head[:t.start])
	return t.parts[1:t.n]
}

// Undone is the offload work that Join's frame leaves.
func (t *Coalesced) Undone() Offload {
	if t.n < 2 {
		return Offload{}
	}
	l := &t.layers
	at := checksumOffset(l.Proto)
	return Offload{ChecksumPartial: true, ChecksumStart: uint16(l.L4), ChecksumOffset: uint16(at), SegmentSize: uint16(t.size)}
}

// joinHeaders turns the headers of the first segment into the joined frame's.
func (t *Coalesced) joinHeaders(h []byte) {
	l := t.layers
	l.End = t.start + t.total
	n := l.End - l.L3
	if l.EtherType == EtherTypeIPv6 {
		IPv6(h[l.L3:]).SetPayloadLen(uint16(n - IPv6Len))
	} else {
		ip := IPv4(h[l.L3:])
		ip.SetTotalLen(uint16(n))
		ip.UpdateChecksum()
	}
	n = l.End - l.L4
	if l.Proto == ProtoUDP {
		udp := UDP(h[l.L4:])
		udp.SetLength(uint16(n))
		udp.SetChecksum(l.PseudoSum(h, n))
		return
	}
	tcp := TCP(h[l.L4:])
	tcp.SetFlags(t.flags)
	tcp.SetChecksum(l.PseudoSum(h, n))
}
