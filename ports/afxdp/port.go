// Package afxdp is the port of a network card or veth on AF_XDP sockets. The kernel's XDP
// hook hands the frames of one interface to rings in memory that the switch shares with
// it (Linux, Documentation/networking/af_xdp.rst).
//
// The rings are our own, on golang.org/x/sys/unix (docs/decisions/001). The
// files, in the order a frame travels:
//
//	umem.go           the shared memory, its frames, the free list
//	sharedmemory.go   as much of it as the ports that come need
//	xdpprogram.go     the XDP program that sends frames to the socket
//	filter.go         what of them, when the rest is to stay the kernel's
//	socket.go         the sockets with their four rings, and the calls that wake the kernel
//	ring.go           one ring
//	stock.go          how many frames the kernel has to receive into
//	frameledger.go    which frames the kernel has of a port; held.go them as a set
//	shared.go         the memory of both
//	request.go        checksums that a pod's kernel left undone
//	multibuffer.go    frames of more than one buffer
//	port.go           Port, and how one ends
//	receive.go        frames from the rings to workers
//	transmit.go       frames from workers to the rings
//	stats.go          what was counted, by the port and by the kernel
//	open.go           opening, modes and fall-backs
//	adopt.go          a port that another process has opened
//	give.go           the same without privilege
//	killed.go         the same after the other process was killed
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

	multiBuffer bool // frames may have many buffers
	veth        bool
	generic     bool // the program runs on what the kernel has made of frames
	silent      bool // checksums may be undone, and nobody tells

	rx struct {
		sync.Mutex
		held        held // the ledger's
		stock       stock
		scratch     [portion]uint32
		poll        [1]unix.PollFd
		multiBuffer multiBuffer
		spent       [portion]uint32 // buffers that were gathered, the first used of them
		used        int
		one         [1]*packet.Frame
		touched     byte // keeps touch's loads from being left out
	}
	tx struct {
		sync.Mutex
		held        held // the ledger's
		outstanding int  // frames in held
		requests    int  // the UMEM's: bytes needed in front of a frame
		scratch     [portion]uint32
		copies      []uint32                   // free frames for what has to be copied
		room        [portion * maxLinks]uint32 // where copies lies
		done        [portion]*packet.Frame     // frames to be released
		down        bool                       // the kernel said that the link is down
		unplugged   bool                       // or it has no carrier: what is sent is dropped
		retryAt     time.Time
	}
	closed bool // under both locks
	theirs bool // another process moves frames, until BeginTraffic; under both
	rests  bool // nothing more is received; under rx
	given  bool // one process opens the port for another without privilege
	killed bool // the process before was killed, until BeginTraffic
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

// Info tells what was opened; Up is asked of the kernel now.
func (p *Port) Info() ports.Info {
	p.tx.Lock()
	defer p.tx.Unlock()
	info := p.info
	info.Up = !p.closed && p.link.Up()
	return info
}

// Close takes the program off the interface and ends the socket. It puts every frame that
// the kernel had of this port back into the UMEM's free list. Frames of which a card is
// still reading the last bytes may be among them; Close gives it a few milliseconds to
// finish. Nobody may be in poll(2) on FD: the kernel would keep the socket until that
// returns. Of a port that another process has, rings and frames are left as they are.
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
		return errors.Join(p.closeShared(), p.link.Close())
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
// the RX ring is dropped, and counted.
func (p *Port) stop() error {
	err := p.program.close()
	p.count.CountDrop(ports.RxClosed, p.socket.rx.readable(len(p.socket.rx.slots)))
	err = errors.Join(err, p.socket.close())
	if p.rx.multiBuffer.open {
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
