package packet

import "encoding/binary"

// Offload state is the work that a sender leaves to hardware. It stays with a
// frame from the receiving to the sending port, so that 64 kB of TCP walk the
// tables once. AdmitOffload passes only two kinds of it:
//
//	partial checksum   of the packet's own TCP or UDP header; a rewrite of
//	                   addresses keeps the pseudo-header sum in the field right,
//	                   and a rewrite of ports leaves the field alone
//	segmentation       of TCP or UDP, which implies the former
//
// All other work is done on arrival. If a port supports neither kind, it gets
// frames without offload state: CompleteChecksum, or Segments (segment.go).

// LargeBuffer is the buffer size in bytes for the largest frame: 64 kB of IP
// packet, Ethernet, two VLAN tags and headroom. It is not a multiple of a page.
// So the headers of neighbouring buffers do not share cache lines.
const LargeBuffer = 66<<10 + 320

const _ = uint(LargeBuffer - Headroom - EthernetLen - 2*VLANLen - 65535) // does not compile when too short

// The most segments that an honest stack asks for in one frame. Frames with more
// are refused (TooManySegments).
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

// None reports whether no work is left.
func (o *Offload) None() bool { return *o == Offload{} }

// checksumOffset is the offset of the checksum in a transport header, if a sender
// may leave it partial; 0 for other protocols.
func checksumOffset(proto uint8) int {
	switch proto {
	case ProtoTCP:
		return tcpChecksum
	case ProtoUDP:
		return udpChecksum
	}
	return 0
}

// FindPartial detects a partial checksum of the packet's own transport header and
// sets the offload state of a frame that came without one. The field of TCP or
// UDP then holds exactly the pseudo-header sum, that of SCTP 0. One whole
// checksum in 65,536 looks the same. That does no harm, because completing it
// gives the same value.
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

// plainlyWhole quickly finds most frames with a whole checksum: IPv4 without
// options or VLAN tags. false means unknown.
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

// l4Least is the end of TCP's checksum, which lies behind UDP's.
const l4Least = tcpChecksum + 2

// partial is the offset of the transport header's checksum if the checksum looks
// partial; otherwise 0.
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

// AdmitOffload turns a received frame's offload state into one of the two kinds
// above; l has the places of its headers. It fills in a checksum of another
// header (of a packet inside a pod's own tunnel, or of SCTP). It returns false if
// the state contradicts the frame.
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

// TooManySegments reports whether AdmitOffload refused a frame because it asks
// for more segments than an honest stack does.
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

// SegmentCount is the number of packets that a frame stands for: 1 unless it is
// to be segmented.
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

// segmentable reports whether a packet can be segmented: whole TCP, or UDP of the
// packet's length, with a payload.
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

// payloadStart is the offset of the transport payload in a TCP or UDP packet.
func payloadStart(b []byte, l *Layers) int {
	if l.Proto == ProtoTCP {
		return l.L4 + TCP(b[l.L4:]).HeaderLen()
	}
	return l.L4 + UDPLen
}

// SegmentLen is the length of the longest segment of f. If f is not to be
// segmented, it is f's own.
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
