package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/slavc/xdp"
	"golang.org/x/sys/unix"
)

// Forwarders of profile forward that do nothing but forward: what a driver
// costs without a pipeline.

// What the forwarders on AF_XDP use alike: the slots of each ring, and the
// frames moved at a time, which is what one sendto of an AF_XDP socket sends
// unless the kernel is told otherwise, and the library does not tell it.
const (
	ringSlots = 2048
	batchSize = 32
)

// forwarder moves frames one way between the interfaces "in" and "out".
type forwarder interface {
	// forward moves up to a batch and returns how many frames were accepted
	// for transmission.
	forward() (int, error)
	close() error
}

// spin opens a forwarder and has a thread of its own call it again and again
// until it is stopped.
func spin(open func(*topology) (forwarder, error)) func(context.Context, *topology) (*running, error) {
	return func(_ context.Context, t *topology) (*running, error) {
		f, err := open(t)
		if err != nil {
			return nil, err
		}
		var done atomic.Bool
		ended := make(chan error, 1)
		go func() { ended <- runForwarder(f, &done) }()
		return &running{process: "self", stop: func() error {
			done.Store(true)
			return errors.Join(<-ended, f.close())
		}}, nil
	}
}

func runForwarder(f forwarder, done *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for !done.Load() {
		if _, err := f.forward(); err != nil {
			return err
		}
	}
	return nil
}

// portPair is two ports of ours.
type portPair struct {
	in, out ports.Port
	release func() error // what the ports need, after them
	batch   [batchSize]*packet.Frame
}

// openPorts opens both ports, one after the other.
func openPorts(open func(link string) (ports.Port, error), release func() error) (*portPair, error) {
	in, err := open(inLink)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	out, err := open(outLink)
	if err != nil {
		return nil, errors.Join(err, in.Close(), release())
	}
	return &portPair{in: in, out: out, release: release}, nil
}

// openXDPPorts opens ports on AF_XDP with one UMEM, so that a frame is
// transmitted from where it was received.
func openXDPPorts() (*portPair, error) {
	umem, err := afxdp.NewUMEM(4 * ringSlots)
	if err != nil {
		return nil, err
	}
	return openPorts(func(link string) (ports.Port, error) {
		p, err := afxdp.Open(umem, afxdp.Options{Interface: link, Mode: afxdp.Native, Ring: ringSlots})
		if err != nil {
			return nil, err // p would be no nil Port
		}
		return p, nil
	}, umem.Close)
}

// openPacketPorts opens ports on packet sockets.
func openPacketPorts() (*portPair, error) {
	return openPorts(func(link string) (ports.Port, error) {
		p, err := afpacket.Open(afpacket.Options{Interface: link})
		if err != nil {
			return nil, err // p would be no nil Port
		}
		return p, nil
	}, func() error { return nil })
}

func (p *portPair) forward() (int, error) {
	n := p.in.Receive(p.batch[:])
	if n == 0 {
		return 0, nil
	}
	n = p.out.Transmit(p.batch[:n])
	p.out.Flush()
	return n, nil
}

func (p *portPair) close() error {
	return errors.Join(p.in.Close(), p.out.Close(), p.release())
}

// libraryPair is the library's side: a socket with its own UMEM on each
// interface, so that every frame is copied from one to the other. The library
// attaches its program by netlink: it would stay on the interface after a
// crash, were it not for the namespace.
type libraryPair struct {
	in, out *libraryPort
}

type libraryPort struct {
	index   int
	program *xdp.Program
	socket  *xdp.Socket
}

func openLibrary(net *topology) (forwarder, error) {
	xdp.DefaultXdpFlags = unix.XDP_FLAGS_DRV_MODE
	xdp.DefaultSocketFlags = unix.XDP_COPY
	in, err := openLibraryPort(net.in)
	if err != nil {
		return nil, err
	}
	out, err := openLibraryPort(net.out)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return &libraryPair{in: in, out: out}, nil
}

func openLibraryPort(index int) (*libraryPort, error) {
	p := &libraryPort{index: index}
	var err error
	if p.program, err = xdp.NewProgram(1); err != nil {
		return nil, err
	}
	if err = p.program.Attach(index); err != nil {
		return nil, errors.Join(err, p.program.Close())
	}
	p.socket, err = xdp.NewSocket(index, 0, &xdp.SocketOptions{
		NumFrames: 2 * ringSlots, FrameSize: 2048,
		FillRingNumDescs: ringSlots, CompletionRingNumDescs: ringSlots,
		RxRingNumDescs: ringSlots, TxRingNumDescs: ringSlots,
	})
	if err == nil {
		err = p.program.Register(0, p.socket.FD())
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.refill()
	return p, nil
}

func (p *libraryPort) refill() {
	if free := p.socket.NumFreeFillSlots(); free >= batchSize {
		p.socket.Fill(p.socket.GetDescs(free, true))
	}
}

// forward reports the library's panics, which an unusual errno brings about,
// as errors.
func (l *libraryPair) forward() (n int, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("the library panicked: %v", why)
		}
	}()
	if ready := l.in.socket.NumReceived(); ready > 0 {
		n = l.move(min(ready, batchSize))
	}
	return n, nil
}

// move copies so many frames from one UMEM to the other.
func (l *libraryPair) move(n int) int {
	received := l.in.socket.Receive(n)
	if done := l.out.socket.NumCompleted(); done > 0 {
		l.out.socket.Complete(done)
	}
	free := l.out.socket.GetDescs(len(received), false)
	for i := range free {
		free[i].Len = uint32(copy(l.out.socket.GetFrame(free[i]), l.in.socket.GetFrame(received[i])))
	}
	sent := l.out.socket.Transmit(free)
	l.in.refill()
	return sent
}

func (l *libraryPair) close() error {
	return errors.Join(l.in.close(), l.out.close())
}

func (p *libraryPort) close() error {
	var err error
	if p.socket != nil {
		err = p.socket.Close()
	}
	return errors.Join(err, p.program.Detach(p.index), p.program.Close())
}
