package packet

import "encoding/binary"

// Segmentation in software, for a port without TCP or UDP segmentation offload.
// It does the work of a card with it (Linux,
// Documentation/networking/segmentation-offloads.rst).
//
// Each segment has the headers of the large frame, except for lengths, the IPv4
// identification (one more each) and the TCP sequence number. FIN and PSH are on
// the last segment only, CWR on the first only (RFC 3168, section 6.1.2). Its
// checksum is complete.

// Segments cuts one frame. The frame must not change until all is cut.
type Segments struct {
	frame   []byte
	layers  Layers
	tunnel  Tunnel
	mark    uint32
	headers int     // bytes up to the transport payload
	size    int     // payload bytes per segment
	each    int     // segments in a part: more than 1 in NewParts
	undone  Offload // … and a part's offload work
	at      int     // offset of the next segment's payload in frame
	n       int     // segments of the large frame before the next one
}

// NewSegments prepares to cut f, whose Offload.SegmentSize is not 0; l has the
// places of its headers. It returns false for a frame that AdmitOffload would
// refuse.
func NewSegments(f *Frame, l *Layers) (s Segments, ok bool) {
	if f.Offload.SegmentSize == 0 || !f.Offload.ownChecksum(l) || !segmentable(f.Bytes(), l) {
		return s, false
	}
	s = Segments{frame: f.Bytes()[:l.End], layers: *l, tunnel: f.Tunnel, mark: f.Mark, size: int(f.Offload.SegmentSize), each: 1}
	s.headers = payloadStart(s.frame, l)
	s.at = s.headers
	return s, true
}

// NewParts prepares to divide f, like NewSegments, into frames that each stand
// for at most n segments and still need segmentation.
func NewParts(f *Frame, l *Layers, n int) (s Segments, ok bool) {
	s, ok = NewSegments(f, l)
	s.undone = f.Offload
	s.each, s.size = n, s.size*n
	return s, ok
}

// Begun reports whether a segment was cut.
func (s *Segments) Begun() bool { return s.at > s.headers }

// More reports whether a segment is left.
func (s *Segments) More() bool { return s.at < len(s.frame) }

// NextLen is the length of the next segment's frame.
func (s *Segments) NextLen() int { return s.headers + min(s.size, len(s.frame)-s.at) }

// HeadersLen is the length of a segment's headers: of all that NextParts writes.
func (s *Segments) HeadersLen() int { return s.headers }

// Next makes f the next segment. If f's buffer is shorter than NextLen behind the
// headroom, it returns false, and f must not be used; the segment stays the next
// one.
func (s *Segments) Next(f *Frame) bool {
	f.Reset()
	if !f.SetLen(s.NextLen()) {
		return false
	}
	b := f.Bytes()
	copy(b[s.headers:], s.NextParts(b))
	f.Tunnel, f.Mark, f.Offload = s.tunnel, s.mark, s.undone
	if len(b)-s.headers <= int(f.Offload.SegmentSize) {
		f.Offload.SegmentSize = 0
	}
	return true
}

// NextParts writes the headers of the next segment to the front of h, which has
// at least HeadersLen bytes. It returns the payload, a part of the large frame.
// So a port can send both without a copy.
func (s *Segments) NextParts(h []byte) (payload []byte) {
	h = h[:s.headers]
	copy(h, s.frame)
	payload = s.frame[s.at:min(s.at+s.size, len(s.frame))]
	s.setNetwork(h, len(payload))
	s.setTransport(h, len(payload))
	s.setChecksum(h, payload)
	s.at += len(payload)
	s.n += s.each
	return payload
}

// setNetwork updates the network header for n bytes of payload.
func (s *Segments) setNetwork(b []byte, n int) {
	if s.layers.EtherType == EtherTypeIPv6 {
		IPv6(b[s.layers.L3:]).SetPayloadLen(uint16(len(b) - s.layers.L3 - IPv6Len + n))
		return
	}
	h := IPv4(b[s.layers.L3:])
	h.SetTotalLen(uint16(len(h) + n))
	h.SetID(h.ID() + uint16(s.n))
	h.UpdateChecksum()
}

// setTransport updates the transport header, except for the checksum.
func (s *Segments) setTransport(b []byte, n int) {
	if s.layers.Proto == ProtoUDP {
		UDP(b[s.layers.L4:]).SetLength(uint16(len(b) - s.layers.L4 + n))
		return
	}
	h := TCP(b[s.layers.L4:])
	h.SetSeq(h.Seq() + uint32(s.at-s.headers))
	flags := h.Flags()
	if s.n > 0 {
		flags &^= TCPCwr
	}
	if s.at+n < len(s.frame) {
		flags &^= TCPFin | TCPPsh
	}
	h.SetFlags(flags)
}

// setChecksum writes the checksum of a segment. Transport headers have an even
// length, so the sum is that of the two parts.
func (s *Segments) setChecksum(b, payload []byte) {
	h := b[s.layers.L4:]
	at := checksumOffset(s.layers.Proto)
	if s.undone.ChecksumPartial {
		binary.BigEndian.PutUint16(h[at:], s.layers.PseudoSum(b, len(h)+len(payload)))
		return
	}
	h[at], h[at+1] = 0, 0
	c := ^Sum(payload, Sum(h, s.layers.PseudoSum(b, len(h)+len(payload))))
	if s.layers.Proto == ProtoUDP {
		c = NonZero(c)
	}
	binary.BigEndian.PutUint16(h[at:], c)
}
