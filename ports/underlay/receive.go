package underlay

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// maxBatch is how many frames are taken from the pool at once.
const maxBatch = 64

// maxJoined is how many joined frames may be under way. When there are more,
// segments stay single.
const maxJoined = 64

// Receive hands out inner frames of datagrams that pass all checks, f.Tunnel
// filled in. What it has read before comes first; then it reads all that waits
// in one socket, up to maxMessages, with one system call. The sockets that have
// something take turns. TCP segments that follow one another come as one frame.
func (p *Port) Receive(batch []*packet.Frame) int {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	if p.epoll < 0 {
		return 0
	}
	frames := p.supply(min(len(batch), maxBatch))
	n := p.deliver(batch)
	for i := 0; i < len(p.rxs) && n == 0 && frames && !p.rests; i++ {
		r := p.nextReady()
		if r == nil {
			break
		}
		if err := p.in.fill(r); err != nil {
			p.count.CountDrop(ports.RxFailed, 1)
		}
		n = p.deliver(batch)
	}
	return n
}

// supply makes sure that there are frames to hand out, want if possible, and
// reports whether there is any. When the pool is empty datagrams wait in the
// socket.
func (p *Port) supply(want int) bool {
	if p.spares < want {
		p.spares += p.pool.Get(p.spare[p.spares:want])
	}
	return p.spares > 0
}

// deliver moves what is in the inbox into batch, as far as there is room.
func (p *Port) deliver(batch []*packet.Frame) (n int) {
	for n < len(batch) && p.peek() {
		packets, bytes := p.in.packets, p.in.bytes
		if f := p.nextFrame(); f != nil {
			batch[n] = f
			n++
		} else {
			p.in.packets, p.in.bytes = packets, bytes // it is counted as dropped
		}
	}
	if p.in.packets > 0 {
		p.count.Received(p.in.packets, p.in.bytes) // as they were on the wire
		p.count.Joined(p.in.packets - n)
		p.in.packets, p.in.bytes = 0, 0
	}
	return n
}

// nextFrame makes a frame of the datagram that peek has found, and of those behind it
// that belong to the same run of TCP segments. Another Node cut the segments, because its
// datagrams have to fit the underlay. They walk the tables here as one frame again, and
// reach a pod as one. Nil, with the loss counted, when it can be none.
func (p *Port) nextFrame() *packet.Frame {
	outer := p.in.from
	outer.ID, outer.Trace, outer.Options = p.in.id, p.in.trace, p.in.options
	first := p.takeDatagram()
	p.gsoMessage.Start(first)
	for outer.Trace == 0 && p.peek() && p.in.trace == 0 && p.in.from.Src == outer.Src && p.in.id == outer.ID && p.in.options == outer.Options && p.canJoin() && p.gsoMessage.Add(p.in.inner) {
		p.takeDatagram()
	}
	var f *packet.Frame
	if p.gsoMessage.Len() > 1 {
		f, p.joined[0] = p.joined[0], nil
		p.gsoMessage.Join(f)
	} else if f = p.single(first); f == nil {
		return nil
	}
	f.Tunnel = outer
	return f
}

// canJoin says whether there is a frame to join segments into.
func (p *Port) canJoin() bool { return p.joined[0] != nil || p.large.Get(p.joined[:]) == 1 }

// spared is a spare frame with these bytes; nil when there is none.
func (p *Port) spared(inner []byte) *packet.Frame {
	if p.spares == 0 {
		return nil
	}
	p.spares--
	f := p.spare[p.spares]
	p.spare[p.spares] = nil
	f.SetBytes(inner)
	return f
}

// drop gives back what Receive keeps.
func (p *Port) drop() {
	p.in.clear()
	packet.Release(p.spare[:p.spares])
	clear(p.spare[:p.spares])
	p.spares = 0
	if p.joined[0] != nil {
		packet.Release(p.joined[:])
		p.joined[0] = nil
	}
}
