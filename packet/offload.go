package packet

import "encoding/binary"

// Offload state is what a sender left for hardware to do. It stays with a
// frame from the port that received it to the port that sends it, so that 64 kB
// of TCP walk the tables once. Only two kinds of it get past AdmitOffload:
//
//	partial checksum   of the packet's own TCP or UDP header; a rewrite of
//	                   addresses keeps the pseudo-header sum in the field right,
//	                   and a rewrite of ports leaves the field alone
//	segmentation       of TCP or UDP, which implies the former
//
// Everything else is completed when it comes in. A port that carries neither
// gets frames without such state: CompleteChecksum, or Segments (segment.go).

// LargeBuffer is the bytes of a buffer for the largest frame that can be
// received: 64 kB of IP packet, Ethernet, two VLAN tags and headroom. It is no
// multiple of a page, so that the headers of neighbouring buffers do not fall
// into the same lines of a cache.
const LargeBuffer = 66<<10 + 320

const _ = uint(LargeBuffer - Headroom - EthernetLen - 2*VLANLen - 65535) // does not compile when too short

// The most segments that an honest stack leaves to be cut from one frame. What asks
// for more is refused (TooManySegments).
//
//	UDP    128 datagrams: UDP_MAX_SEGMENTS of Linux, 64 before Linux 6.9. Linux's
//	       own packet sockets and taps refuse more since Linux 6.12.
//	TCP    any number, if the segments are as long as Linux makes them. It accepts
//	       no maximum segment size below 48 (net.ipv4.tcp_min_snd_mss), and takes
//	       the TCP options of the packet from that: 36 bytes with timestamps. To
//	       half of a small window it shortens segments by the same bound
//	       (tcp_bound_to_half_wnd: 68 bytes less the headers), and to a path's
//	       MTU by far higher ones (route.min_pmtu, tcp_base_mss).
//	GRO    joins segments of any length, and a card's driver hands it at most 64
//	       packets in a turn (NAPI_POLL_WEIGHT).
const (
	fewSegments = 128
	leastMSS    = 48
)

// None says that nothing is left undone.
func (o *Offload) None() bool { return *o == Offload{} }

// checksumOffset is where a transport header has the checksum that a sender
// may leave partial; 0 for protocols without one.
func checksumOffset(proto uint8) int {
	switch proto {
	case ProtoTCP:
		return tcpChecksum
	case ProtoUDP:
		return udpChecksum
	}
	return 0
}

// FindPartial notes a partial checksum of the packet's own transport header in
// the offload state of a frame that came without one: the field of TCP or UDP
// then holds the pseudo-header sum and nothing else, that of SCTP 0. One whole
// checksum in 65,536 looks the same, which does no harm: to complete it gives
// what is there.
func FindPartial(f *Frame) {
	b := f.Bytes()
	if plainlyWhole(b) {
		return
	}
	l := ParseLayers(b)
	if l.L4 == 0 || l.Frag != 0 {
		return
	}
	if at := l.partial(b); at != 0 {
		f.Offload = Offload{ChecksumPartial: true, ChecksumStart: uint16(l.L4), ChecksumOffset: uint16(at)}
	}
}

// plainlyWhole says of most frames with a whole checksum that it is whole, at a
// fraction of the cost: IPv4 without options or VLAN tags.
func plainlyWhole(b []byte) bool {
	const transport = EthernetLen + IPv4Len
	if len(b) < transport+l4Least || binary.BigEndian.Uint16(b[etherType:]) != EtherTypeIPv4 || b[EthernetLen] != 0x45 {
		return false
	}
	h, n, at := IPv4(b[EthernetLen:]), 0, transport
	switch h.Proto() {
	case ProtoTCP:
		n, at = int(h.TotalLen())-IPv4Len, at+tcpChecksum
	case ProtoUDP:
		n, at = int(UDP(b[transport:]).Length()), at+udpChecksum
	default:
		return false
	}
	return binary.BigEndian.Uint16(b[at:]) != h.PseudoSum(h.Proto(), n)
}

// l4Least is where the checksum of TCP, the later one, ends.
const l4Least = tcpChecksum + 2

// partial is where the transport header has its checksum if that is partial by
// the look of it; 0 if not.
func (l *Layers) partial(b []byte) int {
	p := b[l.L4:l.End]
	switch l.Proto {
	case ProtoTCP:
		if TCP(p).Checksum() == l.PseudoSum(b, len(p)) {
			return tcpChecksum
		}
	case ProtoUDP:
		if UDP(p).Checksum() == l.PseudoSum(b, int(UDP(p).Length())) {
			return udpChecksum
		}
	case ProtoSCTP:
		if SCTP(p).Checksum() == 0 {
			return sctpChecksum
		}
	}
	return 0
}

// AdmitOffload makes a received frame's offload state one of the two kinds
// above, l being where its headers are. A checksum that belongs to another
// header, as to that of a packet inside a pod's own tunnel, or to SCTP, is
// filled in. It reports false when the state contradicts the frame.
func AdmitOffload(f *Frame, l *Layers) bool {
	o := &f.Offload
	if o.None() {
		return true
	}
	if o.ownChecksum(l) {
		return o.SegmentSize == 0 || segmentable(f.Bytes(), l) && !tooMany(f, l)
	}
	return o.SegmentSize == 0 && CompleteChecksum(f, l)
}

// ownChecksum reports whether the partial checksum is that of the packet's own
// TCP or UDP header.
func (o *Offload) ownChecksum(l *Layers) bool {
	return o.ChecksumPartial && l.L4 != 0 && l.Frag == 0 &&
		int(o.ChecksumStart) == l.L4 && int(o.ChecksumOffset) == checksumOffset(l.Proto)
}

// TooManySegments says of a frame that AdmitOffload has refused whether this is
// because it asks to be cut into more segments than an honest stack asks for.
func TooManySegments(f *Frame, l *Layers) bool {
	return f.Offload.SegmentSize != 0 && f.Offload.ownChecksum(l) && segmentable(f.Bytes(), l) && tooMany(f, l)
}

// tooMany is TooManySegments for a frame that can be cut.
func tooMany(f *Frame, l *Layers) bool {
	if countSegments(f, l) <= fewSegments {
		return false
	}
	options := payloadStart(f.Bytes(), l) - l.L4 - TCPLen
	return l.Proto != ProtoTCP || int(f.Offload.SegmentSize)+options < leastMSS
}

// SegmentCount is how many packets a frame stands for: 1 unless it is to be cut.
func SegmentCount(f *Frame) int {
	if f.Offload.SegmentSize == 0 {
		return 1
	}
	l := ParseLayers(f.Bytes())
	if !segmentable(f.Bytes(), &l) {
		return 1
	}
	return countSegments(f, &l)
}

// countSegments is SegmentCount for a frame that can be cut.
func countSegments(f *Frame, l *Layers) int {
	size := int(f.Offload.SegmentSize)
	return (l.End - payloadStart(f.Bytes(), l) + size - 1) / size
}

// segmentable reports whether a packet can be cut: whole TCP, or UDP whose length
// is that of the packet, with a payload.
func segmentable(b []byte, l *Layers) bool {
	if l.L4 == 0 || l.Frag != 0 {
		return false
	}
	switch p := b[l.L4:l.End]; l.Proto {
	case ProtoTCP:
		return len(p) > TCP(p).HeaderLen()
	case ProtoUDP:
		return len(p) > UDPLen && int(UDP(p).Length()) == len(p)
	}
	return false
}

// payloadStart is where the transport payload of a TCP or UDP packet begins.
func payloadStart(b []byte, l *Layers) int {
	if l.Proto == ProtoTCP {
		return l.L4 + TCP(b[l.L4:]).HeaderLen()
	}
	return l.L4 + UDPLen
}

// SegmentLen is the length of the longest frame that f is to be cut into: its
// own when it is not to be cut.
func SegmentLen(f *Frame) int {
	if f.Offload.SegmentSize == 0 {
		return f.Len()
	}
	l := ParseLayers(f.Bytes())
	if !segmentable(f.Bytes(), &l) {
		return f.Len()
	}
	return min(f.Len(), payloadStart(f.Bytes(), &l)+int(f.Offload.SegmentSize))
}
