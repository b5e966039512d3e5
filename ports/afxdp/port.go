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
//	filter.go   what of them, when the rest is to stay the kernel's
//	socket.go   the sockets with their four rings, and the calls that wake the kernel
//	ring.go     one ring
//	stock.go    how many frames the kernel has to receive into
//	ledger.go   which frames the kernel has of a port; held.go them as a set
//	shared.go   the memory of both
//	request.go  checksums that a pod's kernel left undone
//	chain.go    frames of more than one buffer
//	port.go     Receive, Transmit, Flush: frames between rings and workers
//	stats.go    what was counted, by the port and by the kernel
//	open.go     opening, modes and fall-backs
//	adopt.go    a port that another process has opened
//	kernel_unsafe.go  system calls that take pointers, and memory that the kernel shares
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
	ledger  *ledger
	program *program
	socket  *socket
	link    *ports.Link
	info    ports.Info
	name    string
	count   ports.Counters
	last    unix.XDPStatistics // of the kernel, kept by Close
	before  unix.XDPStatistics // what it had counted when the port was taken over

	chains  bool // frames may have many buffers
	veth    bool
	generic bool // the program runs on what the kernel has made of frames
	silent  bool // checksums may be undone, and nobody tells

	rx struct {
		sync.Mutex
		held    held // the ledger's
		stock   stock
		scratch [portion]uint32
		poll    [1]unix.PollFd
		chain   chain
		spent   [portion]uint32 // buffers that were gathered, the first used of them
		used    int
		one     [1]*packet.Frame
		touched byte // keeps touch's loads from being left out
	}
	tx struct {
		sync.Mutex
		held        held // the ledger's
		outstanding int  // frames in held
		requests    int  // the UMEM's: bytes needed in front of a frame
		scratch     [portion]uint32
		copies      []uint32                   // free frames for what has to be copied
		room        [portion * maxLinks]uint32 // where copies lies
		away        [portion]*packet.Frame     // frames to be released
		down        bool                       // the kernel said that the link is down
		unplugged   bool                       // or it has no carrier: what is sent is lost
		retryAt     time.Time
	}
	closed bool // under both locks
	theirs bool // another process moves frames, until Begin; under both
	rests  bool // nothing more is received; under rx
}

func newPort(u *UMEM, name string, nic netlink.Link, l *ledger, state *ports.Link) *Port {
	p := &Port{umem: u, link: state, name: name, ledger: l, veth: nic.Type() == "veth"}
	p.rx.held, p.tx.held = l.received, l.sent
	p.info = ports.Info{Driver: "afxdp", MTU: nic.Attrs().MTU}
	copy(p.info.MAC[:], nic.Attrs().HardwareAddr)
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

// unload reads the RX ring until it is empty or batch is full. It returns how
// many frames came, and their bytes.
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
	rx.release()
	p.restock()
	return n, bytes
}

// ready is how many descriptors may be read now, up to want. Of a port that rests
// they are those of a frame that has begun.
func (p *Port) ready(want int) int {
	if p.rests {
		if !p.rx.chain.open {
			return 0
		}
		want = 1
	}
	return p.socket.rx.readable(want)
}

// taken is the frame that a descriptor of the RX ring completes; nil for one
// that completes none. A description that the kernel had no right to leaves its
// buffer to Close, and loses the frame that it is a part of.
func (p *Port) taken(d unix.XDPDesc) *packet.Frame {
	more := d.Options&unix.XDP_PKT_CONTD != 0
	f := p.umem.receive(d)
	if f == nil || !p.rx.held.remove(f.Index) {
		p.tear(ports.RxInvalid, more)
		return nil
	}
	p.rx.stock.take()
	if !more && !p.rx.chain.open {
		return f
	}
	return p.gather(f, !more)
}

// refill gives free frames to the kernel to receive into. Small gaps are left
// for later, so that the free list's lock is taken once for many frames.
func (p *Port) refill() {
	fill := &p.socket.fill
	for {
		want := p.rx.stock.wants(fill.writable(portion))
		if want < portion {
			break
		}
		n := p.umem.take(p.rx.scratch[:want])
		p.rx.stock.out += n
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
	slots, copies := p.demand(part)
	p.tx.unplugged = !p.closed && p.link.Down()
	space := p.space(slots)
	p.tx.copies = p.tx.room[:p.umem.take(p.tx.room[:copies])]
	sent, bytes := 0, 0
	away := p.tx.away[:0]
	for _, f := range part {
		links := p.links(f)
		why := p.refusal(f, links, space)
		if why != ports.None {
			p.count.Refused(why, f)
			away = append(away, f)
			continue
		}
		if links == 0 {
			p.post(f, 0)
		} else {
			p.scatter(f, links)
			away = append(away, f)
		}
		space -= max(links, 1)
		sent++
		bytes += f.Len()
	}
	if sent > 0 {
		p.socket.tx.submit()
		p.count.Sent(sent, bytes)
	}
	p.umem.give(p.tx.copies)
	packet.Release(away)
	clear(away)
	return sent
}

// post puts a frame of this UMEM into the TX ring.
func (p *Port) post(own *packet.Frame, options uint32) {
	p.tx.held.add(own.Index)
	p.tx.outstanding++
	p.socket.tx.write(unix.XDPDesc{Addr: address(own), Len: uint32(own.Len()), Options: options | putRequest(own)})
}

// leaves says whether f can be sent from where it is: it is of this UMEM, with
// room in front for a request, which the kernel wants of frames without one as
// well.
func (p *Port) leaves(f *packet.Frame) bool {
	return p.umem.owns(f) && f.Headroom() >= p.tx.requests
}

// demand is how many slots of the TX ring the frames take, and how many free
// buffers, for those that have to be copied.
func (p *Port) demand(part []*packet.Frame) (slots, copies int) {
	for _, f := range part {
		links := p.links(f)
		slots += max(links, 1)
		copies += links
	}
	return slots, copies
}

// space is how many slots of the TX ring may be filled, up to want. The frames
// under way never outnumber the slots, so that the completion ring, which is
// as long, has room for all.
func (p *Port) space(want int) int {
	if p.closed || p.theirs || p.tx.down {
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

// refusal is the reason not to send f, by so many copies of its parts, into so
// much space.
func (p *Port) refusal(f *packet.Frame, links, space int) ports.Reason {
	why := ports.Refusal(f, p.info.MTU, p.info.Carries)
	switch {
	case why != ports.None:
		return why
	case p.closed, p.theirs:
		return ports.TxClosed
	case p.tx.down, p.tx.unplugged:
		return ports.TxLinkDown
	case space < max(links, 1):
		return ports.TxRingFull
	case links > len(p.tx.copies):
		return ports.TxNoFrame
	}
	return ports.None
}

// Flush makes the kernel send what is in the TX ring and takes back the frames
// that were sent.
func (p *Port) Flush() {
	p.tx.Lock()
	defer p.tx.Unlock()
	if !p.closed && !p.theirs && p.tx.outstanding > 0 {
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

// Close takes the program off the interface, ends the socket and puts every
// frame that the kernel had of this port back into the UMEM's free list. Frames
// of which a card is still reading the last bytes may be among them; Close
// gives it a few milliseconds to finish. Nobody may be in poll(2) on FD: the
// kernel would keep the socket until that returns. Of a port that another process
// has, rings and frames are left as they are.
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
	if p.rests || p.theirs {
		return errors.Join(p.leave(), p.link.Close())
	}
	p.finish()
	return errors.Join(p.stop(), p.ledger.close(), p.link.Close())
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
	if p.rx.chain.open {
		p.tear(ports.RxClosed, false)
	}
	p.umem.give(p.rx.held.drain())
	p.umem.give(p.tx.held.drain())
	p.tx.outstanding = 0
	return err
}

// Generic reports whether the program runs on what the kernel has made of frames,
// where it may have joined several to one.
func (p *Port) Generic() bool { return p.generic }
