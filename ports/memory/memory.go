// Package memory is a port whose other side is the program itself: tests, the
// device-under-test mode and replays inject frames and collect what was
// transmitted. No kernel, no root, no time: what goes in comes out in order, at
// once, or is dropped because a queue is full.
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

// Options describes the port; the zero value will do.
type Options struct {
	// Queue is how many frames each direction holds; 0 is DefaultQueue.
	Queue int
	// MAC and MTU are what Info tells; an MTU of 0 is 1500.
	MAC [6]byte
	MTU int
	// Carries is the undone work that the port takes with a frame.
	Carries ports.Carries
	// Tunnel makes it a port to other Nodes: its frames carry Frame.Tunnel,
	// which whoever injects has set, and whoever collects reads.
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

// New makes a port whose other side is reached by Inject and Collect.
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

// Inject is the other side sending: the frames, all of them, now belong to the
// port. It returns how many the port will hand out; the rest is dropped, and
// counted as if a card had dropped it.
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

// Collect is the other side receiving: it takes up to len(batch) transmitted
// frames, in order, and returns how many. It works after Close too.
func (p *Port) Collect(batch []*packet.Frame) int { return p.out.pop(batch) }

// CollectAll takes all transmitted frames, as copies with headroom that come from no
// pool, with what came along in Tunnel and Mark.
func (p *Port) CollectAll() (all []*packet.Frame) {
	var batch [32]*packet.Frame
	for n := p.Collect(batch[:]); n > 0; n = p.Collect(batch[:]) {
		for _, f := range batch[:n] {
			c := packet.NewFrame(make([]byte, packet.Headroom+f.Len()), nil)
			c.SetBytes(f.Bytes())
			c.Tunnel, c.Mark = f.Tunnel, f.Mark
			all = append(all, c)
		}
		packet.Release(batch[:n])
	}
	return all
}

// Name is the name given to New.
func (p *Port) Name() string { return p.name }

// Receive hands out what was injected.
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

// send queues one frame, or says why not.
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

// Flush has nothing to do: a transmitted frame is there at once.
func (p *Port) Flush() {}

// FD is -1: there is nothing for poll(2) to watch.
func (p *Port) FD() int { return -1 }

// Info is what New was told.
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

// Close releases what was injected and not received. What was transmitted
// waits for Collect, or for the other port of a pair.
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

// ErrFull is Send's answer when the port does not take the frame.
var ErrFull = errors.New("memory: the port takes no more frames")

// Send injects a copy of b in a frame of the Go heap: for tests that have
// bytes, not frames.
func (p *Port) Send(b []byte) error {
	f := packet.NewFrame(make([]byte, packet.Headroom+len(b)), nil)
	f.SetBytes(b)
	if p.Inject(f) == 0 {
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
