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

// Receive reads up to len(batch) datagrams with one system call and hands out
// the inner frames of those that pass all checks, f.Tunnel filled in.
func (p *Port) Receive(batch []*packet.Frame) int {
	p.rxMu.Lock()
	defer p.rxMu.Unlock()
	if p.rxFD < 0 {
		return 0
	}
	n := p.arm(len(batch))
	if n == 0 {
		return 0
	}
	got, err := p.rx.receive(p.rxFD, n)
	if err != nil && err != unix.EAGAIN && err != unix.EINTR {
		p.count.Lost(ports.RxFailed, 1)
	}
	return p.deliver(batch, got)
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

// deliver moves the inner frames of the first got datagrams into batch. The
// frames of refused datagrams stay armed.
func (p *Port) deliver(batch []*packet.Frame, got int) int {
	peers := *p.peers.Load()
	n, bytes, kept := 0, 0, 0
	for i, f := range p.armed[:p.nArmed] {
		if i < got && p.accept(f, i, peers) {
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
	p.count.Received(n, bytes)
	return n
}

// accept checks datagram i, which is in f, and makes f its inner frame.
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
	f.Tunnel.Src, f.Tunnel.Dst = src, p.config.Local
	return true
}
