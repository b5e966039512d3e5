package afxdp

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// A frame that is longer than a buffer lies in several buffers. Each has a descriptor,
// all but the last with XDP_PKT_CONTD (Linux 6.6, Documentation/networking/af_xdp.rst,
// "Multi-Buffer Support"). The switch wants a frame in one piece. So a multi-buffer frame
// is gathered into a large frame when it comes, and scattered when it leaves. These are
// two copies, which frames of one buffer do not pay. Both ways are here.

const (
	// oneBufferMTU is the largest MTU whose frames fit into one buffer.
	oneBufferMTU = FrameSize - kernelHeadroom - 18
	// multiBufferMTU is the largest MTU of a port with chains.
	multiBufferMTU = 9000
	// linkLen is how much of a frame one buffer takes when it leaves.
	linkLen = FrameSize - packet.Headroom
	// maxLinks is how many buffers the longest frame leaves by.
	maxLinks = (multiBufferMTU + 18 + linkLen - 1) / linkLen
	// largeFrames is how many gathered frames of a UMEM there can be.
	largeFrames = 512
)

// multiBuffer is a frame that has not come whole yet. A frame is dropped once, for the
// first reason; the rest of its buffers is passed over.
type multiBuffer struct {
	open  bool          // its last buffer is to come
	frame *packet.Frame // what has come; nil once it is dropped
}

// gather adds a buffer to the frame under way, or begins one. It returns the
// frame when that was the last one.
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

// appendBytes puts bytes behind those of a frame. It returns false if the link has no frames of
// that length, as one with segments that a generic program sees uncut.
func (p *Port) appendBytes(to *packet.Frame, b []byte) bool {
	n := to.Len()
	if n+len(b) > ports.MaxFrame(p.info.MTU) || !to.SetLen(n+len(b)) {
		return false
	}
	copy(to.Bytes()[n:], b)
	return true
}

// tear loses the frame under way, or the one whose first buffer cannot be read;
// more says that more of it is to come.
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

// spend notes a buffer whose bytes were copied; restock gives them all back.
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

// links is how many free buffers a frame is copied into to leave, at most
// maxLinks; 0 when it leaves from where it is.
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

// scatter puts a frame into the TX ring, copied into so many of the borrowed
// buffers. A request stands in front of the first.
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
