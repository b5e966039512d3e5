package afpacket

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"golang.org/x/sys/unix"
)

// Receive reads up to len(batch) frames, at most maxBatch, with one system call.
func (p *Port) Receive(batch []*packet.Frame) int {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed || p.rests {
		return 0
	}
	n := p.arm(min(len(batch), maxBatch))
	if n == 0 {
		return 0
	}
	got, err := p.rx.in.receive(p.fd, n)
	switch err {
	case nil, unix.EAGAIN, unix.EINTR, unix.ENETDOWN:
	case unix.EINVAL: // the header cannot describe the undone work
		p.count.CountDrop(ports.RxOffload, 1)
	default:
		p.count.CountDrop(ports.RxFailed, 1)
	}
	return p.deliver(batch, got)
}

// arm gives frames to the first want messages, and returns how many have one. It takes the frames
// that were last returned to the pool, because these are still in the CPU caches. If the pool is
// empty, frames wait in the socket.
func (p *Port) arm(want int) int {
	missing := 0
	for _, f := range p.rx.armed[:want] {
		if f == nil {
			missing++
		}
	}
	if missing == 0 {
		return want
	}
	fresh := p.rx.fresh[:p.pool.Get(p.rx.fresh[:missing])]
	for i := range p.rx.armed[:want] {
		if p.rx.armed[i] != nil {
			continue
		}
		if len(fresh) == 0 {
			return i
		}
		p.rx.armed[i], fresh[0] = fresh[0], nil
		p.rx.in.setBuffer(i, p.rx.armed[i].Buffer()[packet.Headroom:])
		fresh = fresh[1:]
	}
	return want
}

// deliver moves the first got frames into batch. A refused frame stays armed.
func (p *Port) deliver(batch []*packet.Frame, got int) int {
	n, bytes := 0, 0
	for i, f := range p.rx.armed[:got] {
		if why := p.accept(f, i); why != ports.None {
			p.count.CountDrop(why, 1)
			continue
		}
		p.rx.armed[i] = nil
		batch[n] = f
		n, bytes = n+1, bytes+f.Len()
	}
	p.count.Received(n, bytes)
	return n
}

// accept sets f to the frame of message i, which is in its buffer. It sets the offload state, and
// the VLAN tag that the kernel keeps outside the frame.
func (p *Port) accept(f *packet.Frame, i int) ports.Reason {
	n, truncated := p.rx.in.size(i)
	f.Reset()
	if truncated || !f.SetLen(n) {
		return ports.RxTooLong
	}
	if !ports.ReadVirtio(f, p.rx.in.header(i)) {
		return ports.RxOffload
	}
	if tpid, tci, ok := p.rx.in.tag(i); ok && !packet.PushVLAN(f, tpid, tci) {
		return ports.RxInvalid
	}
	return ports.None
}

// disarm releases the armed frames.
func (p *Port) disarm() {
	for i, f := range p.rx.armed {
		if f != nil {
			packet.Release(p.rx.armed[i : i+1])
			p.rx.armed[i] = nil
		}
	}
}
