package packet

import "net/netip"

// Headroom is how many bytes a driver leaves free in front of a received
// frame: enough for outer Ethernet with a VLAN tag (18), IPv6 (40), UDP (8) and
// Geneve with 60 bytes of options (68).
const Headroom = 134

// Pool takes frames back. Put may be called from any goroutine; it must not
// keep the slice.
type Pool interface {
	Put(frames []*Frame)
}

// Frame is one Ethernet frame with its headroom, its offload state and what a
// tunnel said about it.
type Frame struct {
	buf      []byte
	off, end int
	pool     Pool

	// Index is the driver's own number for this buffer (its place in a UMEM).
	Index uint32
	// Offload is what the sender left for hardware to do.
	Offload Offload
	// Tunnel is the outer header of a decapsulated frame, or the one to be
	// written for a frame on its way to a tunnel port.
	Tunnel Tunnel
	// Mark is the packet mark: what the host said about the frame, or what a
	// flow entry says to it; 0 for none. Only a driver that can carry it looks.
	Mark uint32
}

// Offload is the work a sender left undone, in the terms of the virtio-net
// header (virtio 1.2, section 5.1.6). The zero value is a plain frame whose
// checksums are complete.
type Offload struct {
	// ChecksumPartial says that the layer 4 checksum field holds only the
	// pseudo-header sum; ChecksumStart and ChecksumOffset (bytes from the
	// frame's first byte, and from ChecksumStart) say where the sum begins and
	// belongs.
	ChecksumPartial bool   `json:"checksumPartial,omitzero"`
	ChecksumStart   uint16 `json:"checksumStart,omitzero"`
	ChecksumOffset  uint16 `json:"checksumOffset,omitzero"`
	// SegmentSize is the payload bytes per segment of a frame that is to be
	// segmented, as TCP or UDP by its own headers; 0 when it is not.
	SegmentSize uint16 `json:"segmentSize,omitzero"`
}

// Tunnel is the outer header of a tunnelled frame: addresses, the virtual
// network identifier (24 bits for Geneve and VXLAN, for GRE a key of 32) and the
// TOS and TTL bytes. The zero value means "not tunnelled". Trace is the id of a
// walk that is watched across Nodes, 0 for none: entries cannot see it.
type Tunnel struct {
	Src   netip.Addr `json:"src,omitzero"`
	Dst   netip.Addr `json:"dst,omitzero"`
	ID    uint64     `json:"id,omitzero"`
	TOS   uint8      `json:"tos,omitzero"`
	TTL   uint8      `json:"ttl,omitzero"`
	Trace uint64     `json:"trace,omitzero"`
	// Options are those of a Geneve header, for entries that use tun_metadata fields.
	Options TunnelOptions `json:"options,omitzero"`
}

// NewFrame makes a frame over buf, empty, its data to start Headroom bytes in
// (or at the end of a shorter buffer). pool may be nil.
func NewFrame(buf []byte, pool Pool) *Frame {
	f := &Frame{}
	f.Init(buf, pool)
	return f
}

// Init is NewFrame for a Frame that already has a place.
func (f *Frame) Init(buf []byte, pool Pool) {
	*f = Frame{buf: buf, pool: pool}
	f.Reset()
}

// Reset empties the frame and forgets its offload and tunnel state and its mark.
func (f *Frame) Reset() {
	f.off = min(Headroom, len(f.buf))
	f.end = f.off
	f.Offload, f.Tunnel, f.Mark = Offload{}, Tunnel{}, 0
}

// Bytes is the frame itself: from the first byte of the Ethernet destination
// to the last byte of payload. The slice's capacity ends with the frame.
func (f *Frame) Bytes() []byte { return f.buf[f.off:f.end:f.end] }

// Len is len(f.Bytes()).
func (f *Frame) Len() int { return f.end - f.off }

// Headroom is the number of free bytes in front.
func (f *Frame) Headroom() int { return f.off }

// Tailroom is the number of free bytes behind.
func (f *Frame) Tailroom() int { return len(f.buf) - f.end }

// Buffer is the whole buffer, for a driver that fills it.
func (f *Frame) Buffer() []byte { return f.buf }

// SetBounds says that the frame's bytes are Buffer()[off : off+n]. It reports
// false, changing nothing, when that does not fit.
func (f *Frame) SetBounds(off, n int) bool {
	if off < 0 || n < 0 || off > len(f.buf) || n > len(f.buf)-off {
		return false
	}
	f.off, f.end = off, off+n
	return true
}

// Prepend moves the frame's start n bytes to the front and returns those n
// bytes, which hold whatever was there; nil when the headroom is too short.
func (f *Frame) Prepend(n int) []byte {
	if n < 0 || n > f.off {
		return nil
	}
	f.off -= n
	return f.buf[f.off : f.off+n : f.off+n]
}

// TrimFront drops n bytes from the front; false, changing nothing, when the
// frame is shorter.
func (f *Frame) TrimFront(n int) bool {
	if n < 0 || n > f.Len() {
		return false
	}
	f.off += n
	return true
}

// SetLen cuts or extends the frame at its end to n bytes; false, changing
// nothing, when the buffer is too short.
func (f *Frame) SetLen(n int) bool { return f.SetBounds(f.off, n) }

// SetBytes makes b the frame's content; false, changing nothing, when it does
// not fit behind the headroom.
func (f *Frame) SetBytes(b []byte) bool {
	off := min(Headroom, len(f.buf))
	if len(b) > len(f.buf)-off {
		return false
	}
	f.off, f.end = off, off+copy(f.buf[off:], b)
	return true
}

// CopyFrom makes f a copy of g: bytes, offload and tunnel state, mark; false,
// changing nothing, when g does not fit.
func (f *Frame) CopyFrom(g *Frame) bool {
	if !f.SetBytes(g.Bytes()) {
		return false
	}
	f.Offload, f.Tunnel, f.Mark = g.Offload, g.Tunnel, g.Mark
	return true
}

// Pool is where Release returns the frame; nil for a frame of the Go heap.
func (f *Frame) Pool() Pool { return f.pool }

// Release gives frames back to the pools they came from, one Put per run of
// frames of the same pool. Frames without a pool are left to the garbage
// collector.
func Release(frames []*Frame) {
	for i := 0; i < len(frames); {
		p, j := frames[i].pool, i+1
		for j < len(frames) && frames[j].pool == p {
			j++
		}
		if p != nil {
			p.Put(frames[i:j])
		}
		i = j
	}
}
