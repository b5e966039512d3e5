package forward

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/slavc/xdp"
	"golang.org/x/sys/unix"
)

// libraryPair forwards by the library slavc/xdp. Each link has a socket with its own UMEM, so every frame
// is copied. The library attaches its program by netlink. After a crash the program stays on the link
// until the namespace ends.
type libraryPair struct {
	in, out *libraryPort
}

// libraryPort is a link's socket and program.
type libraryPort struct {
	index   int
	program *xdp.Program
	socket  *xdp.Socket
}

// openLibrary opens sockets on both links.
func openLibrary(net *testbed.Topology) (forwarder, error) {
	xdp.DefaultXdpFlags = unix.XDP_FLAGS_DRV_MODE
	xdp.DefaultSocketFlags = unix.XDP_COPY
	in, err := openLibraryPort(net.In)
	if err != nil {
		return nil, err
	}
	out, err := openLibraryPort(net.Out)
	if err != nil {
		return nil, errors.Join(err, in.close())
	}
	return &libraryPair{in: in, out: out}, nil
}

// openLibraryPort opens a socket on a link.
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

// refill gives the fill ring free frames.
func (p *libraryPort) refill() {
	if free := p.socket.NumFreeFillSlots(); free >= batchSize {
		p.socket.Fill(p.socket.GetDescs(free, true))
	}
}

// forwardBatch moves frames between the sockets. The library panics at an unusual errno; that is an
// error here.
func (l *libraryPair) forwardBatch() (n int, err error) {
	defer func() {
		if why := recover(); why != nil {
			err = fmt.Errorf("the library panicked: %v", why)
		}
	}()
	if ready := l.in.socket.NumReceived(); ready > 0 {
		n = l.copyFrames(min(ready, batchSize))
	}
	return n, nil
}

// copyFrames copies n frames from one UMEM to the other.
func (l *libraryPair) copyFrames(n int) int {
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

// close closes both sockets.
func (l *libraryPair) close() error {
	return errors.Join(l.in.close(), l.out.close())
}

// close closes the socket and detaches the program.
func (p *libraryPort) close() error {
	var err error
	if p.socket != nil {
		err = p.socket.Close()
	}
	return errors.Join(err, p.program.Detach(p.index), p.program.Close())
}
