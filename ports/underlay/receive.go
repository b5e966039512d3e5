package underlay

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// maxBatch is how many frames are taken from the pool at once.
const maxBatch = 64

// maxJoined is how many joined frames may be under way. Beyond that, segments stay single.
const maxJoined = 64

// Receive returns inner frames of datagrams that pass all checks, with f.Tunnel filled in.
// Datagrams that were already read come first. Then Receive reads the datagrams that wait in one
// socket, up to maxMessages, with one system call. Sockets with datagrams take turns. Consecutive
// TCP segments are returned as one frame.
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

// supply provides spare frames, want if possible, and reports whether there is any. If the pool
// is empty, datagrams wait in the socket.
func (p *Port) supply(want int) bool {
	if p.spares < want {
		p.spares += p.pool.Get(p.spare[p.spares:want])
	}
	return p.spares > 0
}

// deliver moves frames from the inbox into batch, as far as there is room.
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
		p.count.Received(p.in.packets, p.in.bytes) // as on the wire
		p.count.Joined(p.in.packets - n)
		p.in.packets, p.in.bytes = 0, 0
	}
	return n
}

// nextFrame makes a frame of the datagram that peek has found, and of the following ones in the
// same run of TCP segments. The other Node cut the segments, because its datagrams must fit the
// underlay. Here they walk the tables as one frame again, and reach a pod as one. If no frame can
// be made, nextFrame counts the drop and returns nil.
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

// spared is a spare frame with these bytes; nil if there is none.
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

// drop releases the frames that Receive holds.
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
