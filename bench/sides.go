package bench

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/slavc/xdp"
	"golang.org/x/sys/unix"
)

// portPair is our side: two ports on one UMEM, so that a frame is transmitted
// from where it was received.
type portPair struct {
	umem    *afxdp.UMEM
	in, out *afxdp.Port
	batch   [batchSize]*packet.Frame
}

func openPorts(*topology) (forwarder, error) {
	p := &portPair{}
	var err error
	if p.umem, err = afxdp.NewUMEM(4 * ringSlots); err != nil {
		return nil, err
	}
	options := afxdp.Options{Interface: inLink, Mode: afxdp.Native, Ring: ringSlots}
	if p.in, err = afxdp.Open(p.umem, options); err != nil {
		return nil, errors.Join(err, p.close())
	}
	options.Interface = outLink
	if p.out, err = afxdp.Open(p.umem, options); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
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
	var errs []error
	for _, port := range []*afxdp.Port{p.in, p.out} {
		if port != nil {
			errs = append(errs, port.Close())
		}
	}
	return errors.Join(append(errs, p.umem.Close())...)
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
