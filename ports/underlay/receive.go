package underlay

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// rxOffset is where in its buffer a datagram is received: the inner frame
// behind a header without options then begins at Headroom.
const rxOffset = packet.Headroom - tunnel.GeneveLen

// Receive reads up to len(batch) datagrams of one address with one system call
// and hands out the inner frames of those that pass all checks, f.Tunnel filled
// in. The addresses take turns; one that has nothing passes.
func (p *Port) Receive(batch []*packet.Frame) int {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	for range p.rxs {
		p.turn = (p.turn + 1) % len(p.rxs)
		if n := p.receiveAt(p.rxs[p.turn], batch); n > 0 {
			return n
		}
	}
	return 0
}

// receiveAt is Receive for one address.
func (p *Port) receiveAt(r *receiver, batch []*packet.Frame) int {
	n := p.arm(len(batch))
	if n == 0 {
		return 0
	}
	got, err := p.rx.receive(r.fd, n)
	if err != nil && err != unix.EAGAIN && err != unix.EINTR {
		p.count.Lost(ports.RxFailed, 1)
	}
	return p.deliver(batch, got, r.at)
}

// arm makes sure that up to want datagrams, at most maxBatch, have frames to go
// to, and returns for how many there are. When the pool is empty they wait in
// the socket.
func (p *Port) arm(want int) int {
	want = min(want, maxBatch)
	if p.nArmed < want {
		old := p.nArmed
		p.nArmed += p.pool.Get(p.armed[old:want])
		for i := old; i < p.nArmed; i++ {
			p.rx.setBuffer(i, p.armed[i].Buffer()[rxOffset:])
		}
	}
	return min(want, p.nArmed)
}

// deliver moves the inner frames of the first got datagrams, which came to an
// address, into batch. The frames of refused datagrams stay armed.
func (p *Port) deliver(batch []*packet.Frame, got int, at netip.Addr) int {
	peers := *p.peers.Load()
	n, bytes, kept := 0, 0, 0
	for i, f := range p.armed[:p.nArmed] {
		if i < got && p.accept(f, i, peers) {
			f.Tunnel.Dst = at
			batch[n] = f
			n, bytes = n+1, bytes+f.Len()
			continue
		}
		if kept != i {
			p.armed[kept] = f
			p.rx.setBuffer(kept, f.Buffer()[rxOffset:])
		}
		kept++
	}
	clear(p.armed[kept:p.nArmed])
	p.nArmed = kept
	p.count.Received(n, bytes) // as they were on the wire
	return p.join(batch[:n])
}

// accept checks datagram i, which is in f, and makes f its inner frame, whose
// Tunnel still lacks the destination.
func (p *Port) accept(f *packet.Frame, i int, peers map[netip.Addr]struct{}) bool {
	src := p.rx.source(i)
	if _, known := peers[src]; !known {
		p.count.lost(rxUnknownNode)
		return false
	}
	size, truncated := p.rx.size(i)
	if truncated {
		p.count.Lost(ports.RxTooLong, 1)
		return false
	}
	f.Reset()
	f.SetBounds(rxOffset, size)
	if why := tunnel.Decap(f); why != tunnel.None {
		p.count.refused(why)
		return false
	}
	f.Tunnel.Src = src
	return true
}
