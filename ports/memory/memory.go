// Package memory is a port whose other side is the program itself. Tests, the device-under-test
// mode and replays inject frames and collect transmitted ones. It needs no kernel, no root and no
// time. Frames come out in order and at once, or are dropped because a queue is full.
package memory

import (
	"cmp"
	"errors"
	"sync"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// DefaultQueue is how many frames each direction holds.
const DefaultQueue = 1024

// Options describes the port. The zero value is valid.
type Options struct {
	// Queue is how many frames each direction holds; 0 is DefaultQueue.
	Queue int
	// MAC and MTU are for Info; an MTU of 0 is 1500.
	MAC [6]byte
	MTU int
	// Carries is the undone work that the port accepts with a frame.
	Carries ports.Carries
	// Tunnel makes it a tunnel port. Its frames carry Frame.Tunnel: the injecting side sets it,
	// and the collecting side reads it.
	Tunnel bool
	// Aside keeps floods away from it.
	Aside bool
}

// Port is a port in memory. All its methods may be called from any goroutine.
type Port struct {
	name    string
	info    ports.Info
	in, out *queue
	count   ports.Counters

	mu     sync.Mutex // orders Transmit and Inject with Close
	closed bool
}

// New makes a port. Inject and Collect are its other side.
func New(name string, o Options) *Port {
	o.Queue = cmp.Or(max(o.Queue, 0), DefaultQueue)
	o.MTU = cmp.Or(o.MTU, 1500)
	return newPort(name, o, newQueue(o.Queue), newQueue(o.Queue))
}

func newPort(name string, o Options, in, out *queue) *Port {
	return &Port{name: name, in: in, out: out, info: ports.Info{
		Driver: "memory", Mode: "queues", Why: "asked for", MAC: o.MAC, MTU: o.MTU, Up: true, Tunnel: o.Tunnel, Aside: o.Aside, Carries: o.Carries,
	}}
}

// Inject sends frames from the other side. The port owns all of them from then on. Inject returns
// how many Receive will return; the others are dropped, and counted as if a card had dropped
// them.
func (p *Port) Inject(frames ...*packet.Frame) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	why := ports.RxRingFull
	n := 0
	if p.closed {
		why = ports.RxClosed
	} else {
		n = p.in.push(frames)
	}
	p.count.CountDrop(why, len(frames)-n)
	packet.Release(frames[n:])
	return n
}

// Collect receives on the other side: it takes up to len(batch) transmitted frames, in order, and
// returns how many. It also works after Close.
func (p *Port) Collect(batch []*packet.Frame) int { return p.out.pop(batch) }

// CollectAll takes all transmitted frames as copies with headroom, without a pool. The copies
// keep Tunnel and Mark.
func (p *Port) CollectAll() (all []*packet.Frame) {
	var batch [32]*packet.Frame
	for n := p.Collect(batch[:]); n > 0; n = p.Collect(batch[:]) {
		for _, f := range batch[:n] {
			c := packet.FrameOf(f.Bytes())
			c.Tunnel, c.Mark = f.Tunnel, f.Mark
			all = append(all, c)
		}
		packet.Release(batch[:n])
	}
	return all
}

// Name is the name given to New.
func (p *Port) Name() string { return p.name }

// Receive returns injected frames.
func (p *Port) Receive(batch []*packet.Frame) int {
	n := p.in.pop(batch)
	p.count.Received(n, totalBytes(batch[:n]))
	return n
}

// Transmit queues the frames for Collect, or for the other port of a pair.
func (p *Port) Transmit(batch []*packet.Frame) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent, bytes := 0, 0
	for i, f := range batch {
		n := f.Len()
		if why := p.send(batch[i : i+1]); why != ports.None {
			p.count.DropFrames(why, f)
			packet.Release(batch[i : i+1])
			continue
		}
		sent++
		bytes += n
	}
	p.count.Sent(sent, bytes)
	return sent
}

// send queues one frame, or returns why not.
func (p *Port) send(one []*packet.Frame) ports.Reason {
	if p.closed {
		return ports.TxClosed
	}
	if why := ports.Refusal(one[0], p.info.MTU, p.info.Carries); why != ports.None {
		return why
	}
	if p.out.push(one) == 0 {
		return ports.TxRingFull
	}
	return ports.None
}

// Flush does nothing, because a transmitted frame is available at once.
func (p *Port) Flush() {}

// FD is -1, because poll(2) has nothing to watch.
func (p *Port) FD() int { return -1 }

// Info describes the port as given to New; Up is false after Close.
func (p *Port) Info() ports.Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	info := p.info
	info.Up = !p.closed
	return info
}

// Stats counts since New.
func (p *Port) Stats() ports.Stats { return p.count.Stats() }

// DropSample is the last frame that was not sent for a reason.
func (p *Port) DropSample(reason string) ports.DropSample { return p.count.DropSample(reason) }

// Close releases injected frames that were not received. Transmitted frames wait for Collect, or
// for the other port of a pair.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	left := p.in.shut()
	p.count.CountDrop(ports.RxClosed, len(left))
	packet.Release(left)
	return nil
}

// ErrFull is Send's error if the port does not accept the frame.
var ErrFull = errors.New("memory: the port takes no more frames")

// Send injects a copy of b in a frame of the Go heap. It is for tests that have bytes, not
// frames.
func (p *Port) Send(b []byte) error {
	if p.Inject(packet.FrameOf(b)) == 0 {
		return ErrFull
	}
	return nil
}

func totalBytes(frames []*packet.Frame) int {
	n := 0
	for _, f := range frames {
		n += f.Len()
	}
	return n
}
