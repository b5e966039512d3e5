// Package afxdp is the port of a network card or veth on AF_XDP sockets: the
// kernel's XDP hook hands the frames of one interface to rings in memory that
// the switch shares with it (Linux, Documentation/networking/af_xdp.rst).
//
// The rings are our own, on golang.org/x/sys/unix (docs/decisions/001). The
// files, in the order a frame travels:
//
//	umem.go     the shared memory, its frames, the free list
//	memory.go   as much of it as the ports that come need
//	program.go  the XDP program that sends frames to the socket
//	socket.go   one socket with its four rings, and the calls that wake the kernel
//	ring.go     one ring
//	request.go  checksums that a pod's kernel left undone
//	port.go     Receive, Transmit, Flush: frames between rings and workers
//	open.go     opening, modes and fall-backs
//
// What it costs: on a veth the kernel's transmit path, about 2,000 cycles a
// frame, is the price, and everything here is small beside it.
package afxdp

import (
	"errors"
	"sync"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// portion is how many frames move between a ring and the UMEM's free list at a
// time, under one lock.
const portion = 64

// retry is how long a link that is down is left alone before the kernel is
// asked to send again.
const retry = 100 * time.Millisecond

// Port is one interface. One worker receives; any worker may transmit. Receive
// and Transmit hold one lock each, taken once per batch, so that Close can
// wait for both.
type Port struct {
	umem    *UMEM
	program *program
	socket  *socket
	link    *ports.Link
	info    ports.Info
	name    string
	count   ports.Counters
	last    unix.XDPStatistics // of the kernel, kept by Close

	silent bool // the other end may leave checksums undone and does not tell

	rx struct {
		sync.Mutex
		held    held
		scratch [portion]uint32
		poll    [1]unix.PollFd
	}
	tx struct {
		sync.Mutex
		held        held
		outstanding int // frames in held
		requests    int // the UMEM's: bytes needed in front of a frame
		scratch     [portion]uint32
		copies      []uint32               // free frames for what has to be copied
		room        [portion]uint32        // where copies lies
		away        [portion]*packet.Frame // frames to be released
		down        bool                   // the kernel said that the link is down
		retryAt     time.Time
	}
	closed bool // under both locks
}

func newPort(u *UMEM, o Options, nic *netlink.LinkAttrs, state *ports.Link) *Port {
	p := &Port{umem: u, link: state, name: o.Interface}
	p.rx.held, p.tx.held = newHeld(u.Frames()), newHeld(u.Frames())
	p.info = ports.Info{Driver: "afxdp", MTU: nic.MTU}
	copy(p.info.MAC[:], nic.HardwareAddr)
	return p
}

// Name is the interface's name.
func (p *Port) Name() string { return p.name }

// FD is the socket, readable when frames have arrived; -1 once closed.
func (p *Port) FD() int {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed {
		return -1
	}
	return p.socket.fd
}

// Receive takes frames off the RX ring and refills the fill ring.
func (p *Port) Receive(batch []*packet.Frame) int {
	p.rx.Lock()
	defer p.rx.Unlock()
	if p.closed {
		return 0
	}
	ready := p.socket.rx.readable(len(batch))
	if ready == 0 && p.socket.busy {
		p.socket.drive()
		ready = p.socket.rx.readable(len(batch))
	}
	n, bytes := 0, 0
	for range ready {
		f := p.taken(p.socket.rx.read())
		if f == nil {
			p.count.Lost(ports.RxInvalid, 1)
			continue
		}
		batch[n] = f
		n++
		bytes += f.Len()
	}
	p.socket.rx.release()
	if p.silent {
		for _, f := range batch[:n] {
			packet.FindPartial(f)
		}
	}
	p.count.Received(n, bytes)
	p.refill()
	return n
}

// taken is the frame that left the RX ring; nil for a description that the
// kernel had no right to, which leaves the frame to Close.
func (p *Port) taken(d unix.XDPDesc) *packet.Frame {
	f := p.umem.receive(d)
	if f == nil || !p.rx.held.remove(f.Index) {
		return nil
	}
	return f
}

// refill gives free frames to the kernel to receive into. Small gaps are left
// for later, so that the free list's lock is taken once for many frames.
func (p *Port) refill() {
	fill := &p.socket.fill
	for {
		want := fill.writable(portion)
		if want < portion {
			break
		}
		n := p.umem.take(p.rx.scratch[:want])
		for _, frame := range p.rx.scratch[:n] {
			p.rx.held.add(frame)
			fill.write(uint64(frame) * FrameSize)
		}
		fill.submit()
		if n < want {
			break
		}
	}
	p.socket.wakeReceiver(p.rx.poll[:])
}

// Transmit puts the frames into the TX ring; Flush makes the kernel look.
// Frames of another pool are copied. What the ring does not take even after
// the kernel was asked to empty it is dropped and counted.
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
	space := p.space(len(part))
	p.borrow(part)
	sent, bytes := 0, 0
	away := p.tx.away[:0]
	for _, f := range part {
		own, why := p.sendable(f, space-sent)
		if own != f { // refused, or copied
			away = append(away, f)
		}
		if why != ports.None {
			p.count.Lost(why, 1)
			continue
		}
		p.tx.held.add(own.Index)
		p.socket.tx.write(unix.XDPDesc{Addr: address(own), Len: uint32(own.Len()), Options: putRequest(own)})
		sent++
		bytes += own.Len()
	}
	if sent > 0 {
		p.socket.tx.submit()
		p.tx.outstanding += sent
		p.count.Sent(sent, bytes)
	}
	p.umem.give(p.tx.copies)
	packet.Release(away)
	clear(away)
	return sent
}

// leaves says whether f can be sent from where it is: it is of this UMEM, with
// room in front for a request, which the kernel wants of frames without one as
// well.
func (p *Port) leaves(f *packet.Frame) bool {
	return p.umem.owns(f) && f.Headroom() >= p.tx.requests
}

// borrow takes a free frame for each frame of part that has to be copied, as
// long as there are any.
func (p *Port) borrow(part []*packet.Frame) {
	foreign := 0
	for _, f := range part {
		if !p.leaves(f) {
			foreign++
		}
	}
	p.tx.copies = p.tx.room[:p.umem.take(p.tx.room[:foreign])]
}

// space is how many slots of the TX ring may be filled, up to want. The frames
// under way never outnumber the slots, so that the completion ring, which is
// as long, has room for all.
func (p *Port) space(want int) int {
	if p.closed || p.tx.down {
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

// sendable is the frame of this UMEM to send for f: f itself, or a copy. With
// a reason, it is nil.
func (p *Port) sendable(f *packet.Frame, space int) (*packet.Frame, ports.Reason) {
	if why := ports.Refusal(f, p.info.MTU, p.info.Carries); why != ports.None {
		return nil, why
	}
	switch {
	case p.closed:
		return nil, ports.TxClosed
	case p.tx.down:
		return nil, ports.TxLinkDown
	case space == 0:
		return nil, ports.TxRingFull
	case p.leaves(f):
		return f, ports.None
	}
	return p.copied(f)
}

// copied is one of the borrowed frames, with f's content.
func (p *Port) copied(f *packet.Frame) (*packet.Frame, ports.Reason) {
	last := len(p.tx.copies) - 1
	if last < 0 {
		return nil, ports.TxNoFrame
	}
	own := &p.umem.frames[p.tx.copies[last]]
	own.Reset()
	if !own.CopyFrom(f) {
		return nil, ports.TxTooLong
	}
	p.tx.copies = p.tx.copies[:last]
	return own, ports.None
}

// Flush makes the kernel send what is in the TX ring and takes back the frames
// that were sent.
func (p *Port) Flush() {
	p.tx.Lock()
	defer p.tx.Unlock()
	if !p.closed && p.tx.outstanding > 0 {
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

// reap takes the frames that were sent off the completion ring into the free
// list.
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

// Info tells what was opened; Up is asked of the kernel now.
func (p *Port) Info() ports.Info {
	p.tx.Lock()
	defer p.tx.Unlock()
	info := p.info
	info.Up = !p.closed && p.link.Up()
	return info
}

// Stats adds the kernel's own counters (XDP_STATISTICS) to ours.
func (p *Port) Stats() ports.Stats {
	s := p.count.Stats()
	kernel := p.kernelStats()
	s.AddLost(ports.RxRingFull, kernel.Rx_ring_full)
	// Every frame that found the fill ring empty is among the dropped ones.
	empty := min(kernel.Rx_fill_ring_empty_descs, kernel.Rx_dropped)
	s.AddLost(ports.RxNoFrame, empty)
	s.AddLost(ports.RxTooLong, kernel.Rx_dropped-empty)
	s.AddLost(ports.RxInvalid, kernel.Rx_invalid_descs)
	s.AddLost(ports.TxFailed, kernel.Tx_invalid_descs)
	return s
}

func (p *Port) kernelStats() unix.XDPStatistics {
	p.tx.Lock()
	defer p.tx.Unlock()
	if !p.closed {
		var now unix.XDPStatistics
		if getsockopt(p.socket.fd, unix.XDP_STATISTICS, &now) == nil {
			p.last = now
		}
	}
	return p.last
}

// Close takes the program off the interface, ends the socket and puts every
// frame that the kernel had of this port back into the UMEM's free list. Frames
// of which a card is still reading the last bytes may be among them; Close
// gives it a few milliseconds to finish. Nobody may be in poll(2) on FD: the
// kernel would keep the socket until that returns.
func (p *Port) Close() error {
	p.kernelStats()
	p.umem.open.Lock()
	defer p.umem.open.Unlock()
	p.rx.Lock()
	defer p.rx.Unlock()
	p.tx.Lock()
	defer p.tx.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.forgetDonor()
	p.finish()
	return errors.Join(p.stop(), p.link.Close())
}

// finish lets the frames under way leave.
func (p *Port) finish() {
	for range 5 {
		p.flush()
		if p.tx.outstanding == 0 || p.tx.down {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *Port) forgetDonor() {
	for i, fd := range p.umem.sockets {
		if fd == p.socket.fd {
			p.umem.sockets = append(p.umem.sockets[:i], p.umem.sockets[i+1:]...)
			return
		}
	}
}

// stop ends program and socket and recovers the frames. What waits unread in
// the RX ring is lost, and counted.
func (p *Port) stop() error {
	err := p.program.close()
	p.count.Lost(ports.RxClosed, p.socket.rx.readable(len(p.socket.rx.slots)))
	err = errors.Join(err, p.socket.close())
	p.umem.give(p.rx.held.drain())
	p.umem.give(p.tx.held.drain())
	p.tx.outstanding = 0
	return err
}
