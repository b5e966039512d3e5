package afxdp

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// A frame longer than a buffer lies in several buffers. Each has a descriptor, all but the last
// with XDP_PKT_CONTD (Linux 6.6, Documentation/networking/af_xdp.rst, "Multi-Buffer Support").
// The switch needs a frame in one piece. So a multi-buffer frame is gathered into a large frame
// when it arrives, and scattered when it leaves. These are two copies, which frames of one buffer
// do not need. Both directions are here.

const (
	// oneBufferMTU is the largest MTU whose frames fit into one buffer.
	oneBufferMTU = FrameSize - kernelHeadroom - 18
	// multiBufferMTU is the largest MTU of a port with multi-buffer frames.
	multiBufferMTU = 9000
	// linkLen is how many bytes of a frame one buffer holds when it leaves.
	linkLen = FrameSize - packet.Headroom
	// maxLinks is how many buffers the longest frame uses when it leaves.
	maxLinks = (multiBufferMTU + 18 + linkLen - 1) / linkLen
	// largeFrames is the largest number of gathered frames of a UMEM.
	largeFrames = 512
)

// multiBuffer is a frame that has not arrived completely. A frame is dropped once, for the first
// reason; the rest of its buffers is skipped.
type multiBuffer struct {
	open  bool          // its last buffer has not come
	frame *packet.Frame // the bytes that have come; nil once it is dropped
}

// gather adds a buffer to the current frame, or begins one. It returns the frame after the last
// buffer.
func (p *Port) gather(f *packet.Frame, last bool) *packet.Frame {
	c := &p.rx.multiBuffer
	if !c.open {
		c.open = true
		if c.frame = p.umem.getLarge(); c.frame == nil {
			p.count.CountDrop(ports.RxNoFrame, 1)
		}
	}
	if c.frame != nil && !p.appendBytes(c.frame, f.Bytes()) {
		p.tear(ports.RxTooLong, !last)
	}
	p.spend(f)
	if !last {
		return nil
	}
	whole := c.frame
	*c = multiBuffer{}
	return whole
}

// appendBytes appends bytes to a frame. It returns false if that is longer than a frame of the
// link, as with segments that a generic program sees uncut.
func (p *Port) appendBytes(to *packet.Frame, b []byte) bool {
	n := to.Len()
	if n+len(b) > ports.MaxFrame(p.info.MTU) || !to.SetLen(n+len(b)) {
		return false
	}
	copy(to.Bytes()[n:], b)
	return true
}

// tear drops the current frame, or a frame whose first buffer cannot be read. more says that more
// buffers of it will come.
func (p *Port) tear(why ports.Reason, more bool) {
	c := &p.rx.multiBuffer
	if !c.open || c.frame != nil {
		p.count.CountDrop(why, 1)
	}
	if c.frame != nil {
		p.rx.one[0] = c.frame
		packet.Release(p.rx.one[:])
	}
	*c = multiBuffer{open: more}
}

// spend records a buffer whose bytes were copied; restock frees all of them.
func (p *Port) spend(f *packet.Frame) {
	if p.rx.used == len(p.rx.spent) {
		p.restock()
	}
	p.rx.spent[p.rx.used] = f.Index
	p.rx.used++
}

func (p *Port) restock() {
	p.umem.give(p.rx.spent[:p.rx.used])
	p.rx.used = 0
}

// links is how many free buffers a frame is copied into to leave, at most maxLinks. It is 0 if
// the frame leaves from its own buffer.
func (p *Port) links(f *packet.Frame) int {
	switch n := f.Len(); {
	case p.leaves(f):
		return 0
	case n <= linkLen:
		return 1
	default:
		return min((n+linkLen-1)/linkLen, maxLinks)
	}
}

// scatter copies a frame into n of the borrowed buffers, and puts these into the TX ring. A
// request precedes the first.
func (p *Port) scatter(f *packet.Frame, n int) {
	left := len(p.tx.copies) - n
	rest, offload := f.Bytes(), f.Offload
	for _, index := range p.tx.copies[left:] {
		own := &p.umem.frames[index]
		own.Reset()
		own.SetBytes(rest[:min(linkLen, len(rest))])
		rest = rest[own.Len():]
		own.Offload, offload = offload, packet.Offload{}
		options := uint32(0)
		if len(rest) > 0 {
			options = unix.XDP_PKT_CONTD
		}
		p.post(own, options)
	}
	p.tx.copies = p.tx.copies[:left]
}
