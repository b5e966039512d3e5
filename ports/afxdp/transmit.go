package afxdp

import (
	"errors"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// retry is how long after a failure the kernel is not asked to send on a link that is down.
const retry = 100 * time.Millisecond

// Transmit puts the frames into the TX ring; Flush makes the kernel send them. Frames of another
// pool are copied. If the ring stays full even after the kernel was asked to empty it, the
// remaining frames are dropped and counted.
func (p *Port) Transmit(batch []*packet.Frame) int {
	p.tx.Lock()
	defer p.tx.Unlock()
	total := 0
	for len(batch) > 0 {
		part := batch[:min(portion, len(batch))]
		total += p.transmit(part)
		batch = batch[len(part):]
	}
	return total
}

// transmit is Transmit for at most a portion.
func (p *Port) transmit(part []*packet.Frame) int {
	slots, copies := p.demand(part)
	p.tx.unplugged = !p.closed && p.link.Down()
	space := p.space(slots)
	p.tx.copies = p.tx.room[:p.umem.takeFree(p.tx.room[:copies])]
	sent, bytes := 0, 0
	done := p.tx.done[:0]
	for _, f := range part {
		links := p.links(f)
		why := p.refusal(f, links, space)
		if why != ports.None {
			p.count.DropFrames(why, f)
			done = append(done, f)
			continue
		}
		if links == 0 {
			p.post(f, 0)
		} else {
			p.scatter(f, links)
			done = append(done, f)
		}
		space -= max(links, 1)
		sent++
		bytes += f.Len()
	}
	if sent > 0 {
		p.socket.tx.submit()
		p.count.Sent(sent, bytes)
	}
	p.umem.give(p.tx.copies)
	packet.Release(done)
	clear(done)
	return sent
}

// post puts a frame of this UMEM into the TX ring.
func (p *Port) post(own *packet.Frame, options uint32) {
	p.socket.tx.write(unix.XDPDesc{Addr: address(own), Len: uint32(own.Len()), Options: options | putRequest(own)})
	p.ledger.journal[posted] = uint64(p.socket.tx.local)
	p.tx.held.add(own.Index)
	p.tx.outstanding++
}

// leaves says whether f can be sent from its own buffer. It must belong to this UMEM, with room
// in front for a request. The kernel needs that room even without a request.
func (p *Port) leaves(f *packet.Frame) bool {
	return p.umem.owns(f) && f.Headroom() >= p.tx.requests
}

// demand is how many slots of the TX ring the frames need, and how many free buffers for copies.
func (p *Port) demand(part []*packet.Frame) (slots, copies int) {
	for _, f := range part {
		links := p.links(f)
		slots += max(links, 1)
		copies += links
	}
	return slots, copies
}

// space is how many slots of the TX ring may be filled, up to want. The frames under way never
// outnumber the slots, so the completion ring, which is as long, has room for all.
func (p *Port) space(want int) int {
	if p.closed || p.theirs || p.tx.down {
		return 0
	}
	if p.writable(want) < want {
		p.flush()
	}
	if p.tx.down {
		return 0
	}
	return p.writable(want)
}

func (p *Port) writable(want int) int {
	size := len(p.socket.tx.slots)
	return p.socket.tx.writable(min(want, size-p.tx.outstanding))
}

// refusal is the reason not to send f, with this many copies and free slots.
func (p *Port) refusal(f *packet.Frame, links, space int) ports.Reason {
	why := ports.Refusal(f, p.info.MTU, p.info.Carries)
	switch {
	case why != ports.None:
		return why
	case p.closed, p.theirs:
		return ports.TxClosed
	case p.tx.down, p.tx.unplugged:
		return ports.TxLinkDown
	case space < max(links, 1):
		return ports.TxRingFull
	case links > len(p.tx.copies):
		return ports.TxNoFrame
	}
	return ports.None
}

// Flush makes the kernel send the frames in the TX ring and frees the frames that were sent.
func (p *Port) Flush() {
	p.tx.Lock()
	defer p.tx.Unlock()
	if !p.closed && !p.theirs && p.tx.outstanding > 0 {
		p.flush()
	}
}

func (p *Port) flush() {
	p.reap()
	if p.tx.outstanding == 0 || p.tx.down && time.Now().Before(p.tx.retryAt) {
		return
	}
	err := p.socket.kick()
	if p.tx.down = err != nil; p.tx.down {
		p.tx.retryAt = time.Now().Add(retry)
		if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EBADF) {
			p.link.Gone()
		}
		return
	}
	p.reap()
}

// reap moves sent frames from the completion ring to the free list.
func (p *Port) reap() {
	for {
		ready := p.socket.done.readable(portion)
		if ready == 0 {
			return
		}
		n := 0
		for range ready {
			frame := uint32(p.socket.done.read() / FrameSize)
			if int(frame) < p.umem.Frames() && p.tx.held.remove(frame) {
				p.tx.scratch[n] = frame
				n++
			}
		}
		p.socket.done.release()
		p.umem.give(p.tx.scratch[:n])
		p.tx.outstanding -= n
	}
}
