package pcap

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// mtu is what fits into an IPv4 packet: captures of a host with segmentation
// offload hold frames as long as that.
const mtu = 65535

// frames is how many packets may be under way between Receive and Release.
const frames = 128

// Port receives what a capture holds and writes what is transmitted to
// another. All methods may be called from any goroutine.
type Port struct {
	name  string
	pool  *packet.HeapPool
	count ports.Counters

	mu     sync.Mutex
	in     *Reader
	out    *Writer
	now    time.Time
	ended  bool
	err    error
	closed bool
}

// NewPort makes a port of a capture to read and one to write; either may be
// nil. The port closes both.
func NewPort(name string, in *Reader, out *Writer) *Port {
	return &Port{
		name: name, in: in, out: out, ended: in == nil,
		pool: packet.NewPool(frames, packet.Headroom+ports.MaxFrame(mtu)),
	}
}

// Name is the name given to NewPort.
func (p *Port) Name() string { return p.name }

// Receive hands out the next packets. Packets of which the capture holds only
// a part are counted and left out. 0 may mean that all frames are under way;
// Ended tells.
func (p *Port) Receive(batch []*packet.Frame) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, bytes := 0, 0
	for n < len(batch) && !p.ended && !p.closed {
		if p.pool.Get(batch[n:n+1]) == 0 {
			break
		}
		if !p.read(batch[n]) {
			packet.Release(batch[n : n+1])
			continue
		}
		bytes += batch[n].Len()
		n++
	}
	p.count.Received(n, bytes)
	return n
}

// read fills f with the next packet; false when it was left out or the
// capture has ended.
func (p *Port) read(f *packet.Frame) bool {
	next, err := p.in.Next()
	if err != nil {
		p.ended = true
		if err != io.EOF {
			p.err = err
		}
		return false
	}
	p.now = next.Time
	switch {
	case next.Length > len(next.Bytes):
		p.count.Lost(ports.RxCut, 1)
		return false
	case !f.SetBytes(next.Bytes):
		p.count.Lost(ports.RxTooLong, 1)
		return false
	}
	return true
}

// Transmit writes the frames with the time of the packet last received, since
// a replay has no clock but its capture.
func (p *Port) Transmit(batch []*packet.Frame) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count.TransmitEach(batch, p.write)
}

func (p *Port) write(f *packet.Frame) ports.Reason {
	if why := ports.Refusal(f, mtu, 0); why != ports.None {
		return why
	}
	switch {
	case p.closed:
		return ports.TxClosed
	case p.out == nil:
		return ports.TxLinkDown
	}
	if err := p.out.Write(p.now, f.Bytes()); err != nil {
		p.err = errors.Join(p.err, err)
		return ports.TxFailed
	}
	return ports.None
}

// Specimen is the last frame that was not sent for a reason.
func (p *Port) Specimen(reason string) ports.Specimen { return p.count.Specimen(reason) }

// Ended says that the capture has no more packets, or no readable ones.
func (p *Port) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// Now is the time of the packet last received, the zero time before the first.
func (p *Port) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Err is what went wrong with either file; nil for a capture read to its end.
func (p *Port) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Flush has nothing to do; Close writes what is buffered.
func (p *Port) Flush() {}

// FD is -1: there is nothing for poll(2) to watch.
func (p *Port) FD() int { return -1 }

// Info describes the port.
func (p *Port) Info() ports.Info {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ports.Info{Driver: "pcap", Mode: "capture files", Why: "asked for", MTU: mtu, Up: !p.closed}
}

// Stats counts since NewPort.
func (p *Port) Stats() ports.Stats { return p.count.Stats() }

// Close closes both files; the written one is complete then.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	var err error
	if p.in != nil {
		err = p.in.Close()
	}
	if p.out != nil {
		err = errors.Join(err, p.out.Close())
	}
	return err
}
