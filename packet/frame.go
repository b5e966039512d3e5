package packet

import "net/netip"

// Headroom is the number of bytes that a driver leaves free in front of a received frame. It is
// enough for outer Ethernet with a VLAN tag (18), IPv6 (40), UDP (8) and Geneve with 60 bytes of
// options (68).
const Headroom = 134

// Pool takes frames back. Any goroutine may call Put, which must not keep the slice.
type Pool interface {
	Put(frames []*Frame)
}

// Frame is one Ethernet frame with its headroom, its offload state and its tunnel header.
type Frame struct {
	buf      []byte
	off, end int
	pool     Pool

	// Index is the driver's own number for this buffer (its place in a UMEM).
	Index uint32
	// Offload is the work that the sender left to hardware.
	Offload Offload
	// Tunnel is the outer header of a decapsulated frame, or the one for a frame on its way to a
	// tunnel port.
	Tunnel Tunnel
	// Mark is the packet mark, 0 for none. It goes from the host to flow entries and back. Only
	// some drivers carry it.
	Mark uint32
}

// Offload is the work that a sender left undone, in the terms of the virtio-net header (virtio
// 1.2, section 5.1.6). The zero value is a plain frame with complete checksums.
type Offload struct {
	// ChecksumPartial is set if the layer 4 checksum field holds only the pseudo-header sum. The
	// sum begins at ChecksumStart, in bytes from the frame's first byte. The checksum belongs
	// ChecksumOffset bytes behind that.
	ChecksumPartial bool   `json:"checksumPartial,omitzero"`
	ChecksumStart   uint16 `json:"checksumStart,omitzero"`
	ChecksumOffset  uint16 `json:"checksumOffset,omitzero"`
	// SegmentSize is the payload bytes per segment of a frame to be segmented, as TCP or UDP by
	// its own headers. Otherwise it is 0.
	SegmentSize uint16 `json:"segmentSize,omitzero"`
}

// Tunnel is the outer header of a tunnelled frame: addresses, the virtual network identifier, and
// the TOS and TTL bytes. The identifier has 24 bits for Geneve and VXLAN; for GRE it is a key of
// 32 bits. The zero value means "not tunnelled". Trace is the id of a walk that is watched across
// Nodes, 0 for none. Entries cannot see it.
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

// NewFrame makes an empty frame over buf. Its data start at Headroom, or at the end of a shorter
// buffer. pool may be nil.
func NewFrame(buf []byte, pool Pool) *Frame {
	f := &Frame{}
	f.Init(buf, pool)
	return f
}

// FrameOf makes a frame with a copy of b in memory of its own. It has room for headers in front and
// padding behind.
func FrameOf(b []byte) *Frame {
	const behind = 64
	f := NewFrame(make([]byte, Headroom+len(b)+behind), nil)
	f.SetBytes(b)
	return f
}

// Init is NewFrame for an existing Frame.
func (f *Frame) Init(buf []byte, pool Pool) {
	*f = Frame{buf: buf, pool: pool}
	f.Reset()
}

// Reset empties the frame and clears its offload state, tunnel state and mark.
func (f *Frame) Reset() {
	f.off = min(Headroom, len(f.buf))
	f.end = f.off
	f.Offload, f.Tunnel, f.Mark = Offload{}, Tunnel{}, 0
}

// Bytes is the frame itself, from the first byte of the Ethernet destination to the last byte of
// payload. The slice's capacity ends with the frame.
func (f *Frame) Bytes() []byte { return f.buf[f.off:f.end:f.end] }

// Len is len(f.Bytes()).
func (f *Frame) Len() int { return f.end - f.off }

// Headroom is the number of free bytes in front.
func (f *Frame) Headroom() int { return f.off }

// Tailroom is the number of free bytes behind.
func (f *Frame) Tailroom() int { return len(f.buf) - f.end }

// Buffer is the whole buffer, for a driver that fills it.
func (f *Frame) Buffer() []byte { return f.buf }

// SetBounds makes the frame's bytes Buffer()[off : off+n]. If that does not fit, it changes
// nothing and returns false.
func (f *Frame) SetBounds(off, n int) bool {
	if off < 0 || n < 0 || off > len(f.buf) || n > len(f.buf)-off {
		return false
	}
	f.off, f.end = off, off+n
	return true
}

// Prepend moves the frame's start n bytes to the front and returns those n bytes, with their old
// contents. It is nil if the headroom is too short.
func (f *Frame) Prepend(n int) []byte {
	if n < 0 || n > f.off {
		return nil
	}
	f.off -= n
	return f.buf[f.off : f.off+n : f.off+n]
}

// TrimFront drops n bytes from the front. If the frame is shorter, it changes nothing and returns
// false.
func (f *Frame) TrimFront(n int) bool {
	if n < 0 || n > f.Len() {
		return false
	}
	f.off += n
	return true
}

// SetLen cuts or extends the frame at its end to n bytes. If the buffer is too short, it changes
// nothing and returns false.
func (f *Frame) SetLen(n int) bool { return f.SetBounds(f.off, n) }

// SetBytes makes b the frame's content. If b does not fit behind the headroom, it changes nothing
// and returns false.
func (f *Frame) SetBytes(b []byte) bool {
	off := min(Headroom, len(f.buf))
	if len(b) > len(f.buf)-off {
		return false
	}
	f.off, f.end = off, off+copy(f.buf[off:], b)
	return true
}

// CopyFrom makes f a copy of g: bytes, offload and tunnel state, mark. If g does not fit, it
// changes nothing and returns false.
func (f *Frame) CopyFrom(g *Frame) bool {
	if !f.SetBytes(g.Bytes()) {
		return false
	}
	f.Offload, f.Tunnel, f.Mark = g.Offload, g.Tunnel, g.Mark
	return true
}

// Pool is the pool to which Release returns the frame; nil for a frame of the Go heap.
func (f *Frame) Pool() Pool { return f.pool }

// Release returns frames to their pools, with one Put per run of frames of the same pool. The
// garbage collector frees frames without a pool.
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
