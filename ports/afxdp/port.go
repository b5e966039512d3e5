// Package afxdp is the port of a network card or veth on AF_XDP sockets. The kernel's XDP
// hook hands the frames of one interface to rings in memory that the switch shares with
// it (Linux, Documentation/networking/af_xdp.rst).
//
// The rings are antrail's own, on golang.org/x/sys/unix (docs/decisions/001). The files, in the
// order in which a frame meets them:
//
//	umem.go           the shared memory, its frames, the free list
//	sharedmemory.go   as many UMEMs as the ports need
//	xdpprogram.go     the XDP program that sends frames to the socket
//	filter.go         the frames that it leaves to the kernel
//	socket.go         the sockets with their four rings, and the calls that wake the kernel
//	ring.go           one ring
//	stock.go          how many frames the kernel has to receive into
//	frameledger.go    the frames that the kernel has of a port; held.go: a set of frames
//	shared.go         memory that another process can map
//	request.go        checksums that a pod's kernel left undone
//	multibuffer.go    frames of more than one buffer
//	port.go           Port, and how one ends
//	receive.go        frames from the rings to workers
//	transmit.go       frames from workers to the rings
//	stats.go          counters of the port and of the kernel
//	open.go           opening, modes and fall-backs
//	adopt.go          a port that another process has opened
//	give.go           the same without privilege
//	killed.go         the same after the other process was killed
//	kernel_unsafe.go  system calls that take pointers, and memory that the kernel shares
//
// Its cost: on a veth the kernel's transmit path takes about 2,000 cycles per frame. Everything
// here is small beside that.
package afxdp

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// portion is how many frames move at a time between a ring and the UMEM's free list, under one
// lock.
const portion = 64

// Port is one interface. One worker receives; any worker may transmit. Receive and Transmit each
// hold a lock, taken once per batch, so that Close can wait for both.
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
	before  unix.XDPStatistics // the kernel's counters when the port was taken over

	multiBuffer bool // frames may have many buffers
	veth        bool
	generic     bool // the program runs on skbs
	silent      bool // checksums may be undone, without a mark that says so

	rx struct {
		sync.Mutex
		held        held // the ledger's
		stock       stock
		scratch     [portion]uint32
		poll        [1]unix.PollFd
		multiBuffer multiBuffer
		spent       [portion]uint32 // gathered buffers; used is how many
		used        int
		one         [1]*packet.Frame
		touched     byte // prevents the compiler from removing touch's loads
	}
	tx struct {
		sync.Mutex
		held        held // the ledger's
		outstanding int  // number of frames in held
		requests    int  // the UMEM's: bytes in front of a frame for a request
		scratch     [portion]uint32
		copies      []uint32                   // free frames for copies
		room        [portion * maxLinks]uint32 // the memory of copies
		done        [portion]*packet.Frame     // frames to release
		down        bool                       // the kernel said that the link is down
		unplugged   bool                       // or it has no carrier: transmitted frames are dropped
		retryAt     time.Time
	}
	closed bool // under both locks
	theirs bool // another process moves frames, until BeginTraffic; under both locks
	rests  bool // nothing more is received; under rx
	given  bool // opened by one process for another without privilege
	killed bool // the predecessor was killed, until BeginTraffic
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

// Info describes the port; Up is the link's state now.
func (p *Port) Info() ports.Info {
	p.tx.Lock()
	defer p.tx.Unlock()
	info := p.info
	info.Up = !p.closed && p.link.Up()
	return info
}

// Close detaches the program from the interface and closes the socket. It returns every frame
// that the kernel had of this port to the UMEM's free list. A card may still be reading the last
// bytes of some frames; Close gives it a few milliseconds to finish. No goroutine may be in
// poll(2) on FD, because the kernel would keep the socket until poll returns. If another process
// has the port, Close leaves rings and frames as they are.
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

// finish waits a few milliseconds for the frames under way to leave.
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
	p.umem.sockets = slices.DeleteFunc(p.umem.sockets, func(fd int) bool { return fd == p.socket.fd })
}

// stop closes program and socket and recovers the frames. Unread frames in the RX ring are
// dropped and counted.
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

// Generic reports whether the program runs on skbs, where the kernel may have joined several
// frames.
func (p *Port) Generic() bool { return p.generic }
