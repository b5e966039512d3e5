package afxdp

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// Receive reads frames from the RX ring and refills the fill ring.
func (p *Port) Receive(batch []*packet.Frame) int {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed || p.theirs {
		return 0
	}
	n, bytes := p.unload(batch)
	if n == 0 && p.socket.busy && !p.rests {
		p.socket.drive()
		n, bytes = p.unload(batch)
	}
	if p.silent {
		p.rx.touched = touch(batch[:n])
		for _, f := range batch[:n] {
			packet.FindPartial(f)
		}
	}
	p.count.Received(n, bytes)
	p.rx.stock.received(p.socket.rx.readable(len(p.socket.rx.slots)))
	p.refill()
	return n
}

// unload reads the RX ring until it is empty or batch is full. It returns the number of frames,
// and their bytes.
func (p *Port) unload(batch []*packet.Frame) (n, bytes int) {
	rx := &p.socket.rx
	for n < len(batch) {
		ready := p.ready(len(batch) - n)
		if ready == 0 {
			break
		}
		for range ready {
			if f := p.taken(rx.read()); f != nil {
				batch[n] = f
				n++
				bytes += f.Len()
			}
		}
	}
	p.noteCut()
	rx.release()
	p.restock()
	return n, bytes
}

// ready is how many descriptors may be read now, up to want. After Rest, only descriptors of a
// frame that has begun may be read.
func (p *Port) ready(want int) int {
	if p.rests {
		if !p.rx.multiBuffer.open {
			return 0
		}
		want = 1
	}
	return p.socket.rx.readable(want)
}

// taken is the frame that a descriptor of the RX ring completes, or nil. If the descriptor is
// invalid, its buffer stays until Close, and its frame is dropped.
func (p *Port) taken(d unix.XDPDesc) *packet.Frame {
	more := d.Options&unix.XDP_PKT_CONTD != 0
	f := p.umem.receive(d)
	if f == nil || !p.rx.held.remove(f.Index) {
		p.tear(ports.RxInvalid, more)
		return nil
	}
	p.rx.stock.countReceived()
	if !more && !p.rx.multiBuffer.open {
		return f
	}
	return p.gather(f, !more)
}

// refill gives free frames to the kernel to receive into. It leaves small gaps for later, so that
// the free list's lock is taken once for many frames.
func (p *Port) refill() {
	fill := &p.socket.fill
	for {
		want := p.rx.stock.wants(fill.writable(portion))
		if want < portion {
			break
		}
		n := p.umem.takeFree(p.rx.scratch[:want])
		p.rx.stock.out += n
		for _, frame := range p.rx.scratch[:n] {
			fill.write(uint64(frame) * FrameSize)
		}
		p.ledger.journal[filled] = uint64(fill.local)
		for _, frame := range p.rx.scratch[:n] {
			p.rx.held.add(frame)
		}
		fill.submit()
		if n < want {
			break
		}
	}
	p.socket.wakeReceiver(p.rx.poll[:])
}
