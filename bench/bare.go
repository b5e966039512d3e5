package bench

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"golang.org/x/sys/unix"
)

// Contender "bare packet sockets": the least that carries frames between two pods'
// veths over packet sockets, which is what these allow a switch in user space. It
// has the sockets of ports/afpacket with all their options and the program that
// keeps frames from the Node's stack; the virtio-net header goes from the one to
// the other as it came, with a segment of up to 64 kB behind it.
//
// A thread each way in read(2) and write(2), which wait in the kernel, and a buffer
// that stays in the caches. Tried beside it, and no faster: recvmmsg and sendmmsg with
// up to 64 frames, the same in C, and PACKET_QDISC_BYPASS. One thread for both ways,
// which has to poll(2), moved a quarter less of eight streams. Two ports of
// ports/afpacket with a thread and poll(2) each took 5 % more processor time, most of
// that for poll.
//
// It is the best case of streams only: who sleeps at once answers late, and a round
// trip would tell nothing but that.

// bareForwarder is two threads between two ports, of which it uses the sockets.
type bareForwarder struct {
	pair  *portPair
	done  atomic.Bool
	ended chan error
	lent  func()
}

// openBare is two pods with a bareForwarder between them, which rests.
func openBare() (*podPair, error) {
	n, err := newNode(2)
	if err != nil {
		return nil, err
	}
	err = errors.Join(n.addPod(n.pods[0], inLink, plainClient+"/24", nil), n.addPod(n.pods[1], outLink, plainServer+"/24", nil))
	b := &bareForwarder{ended: make(chan error)}
	if err == nil {
		err = within(n.ns)(func() (err error) { b.pair, err = openPacketPorts(); return err })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", bareName, err), n.close())
	}
	p := n.pair(bareName, n.pods[0], n.pods[1])
	p.only, p.rests = "stream", b.rests
	p.close = func() error { return errors.Join(b.pair.close(), n.close()) }
	for _, port := range []ports.Port{b.pair.in, b.pair.out} {
		err = errors.Join(err, waiting(socketOf(port), barePatience))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", bareName, err), p.close())
	}
	return p, nil
}

// barePatience is how long a read waits: it bounds how late threads see that they
// are to end.
const barePatience = 20 * time.Millisecond

// socketOf is the socket of a port of openPacketPorts.
func socketOf(p ports.Port) int { return p.(*afpacket.Port).FD() }

// rests ends the threads, or has them begin. What comes meanwhile waits in the
// sockets.
func (b *bareForwarder) rests(yes bool) error {
	if yes {
		b.done.Store(true)
		err := errors.Join(<-b.ended, <-b.ended)
		b.lent()
		return err
	}
	b.done.Store(false)
	b.lent = lend(2)
	in, out := socketOf(b.pair.in), socketOf(b.pair.out)
	go func() { b.ended <- runBare(in, out, &b.done) }()
	go func() { b.ended <- runBare(out, in, &b.done) }()
	return nil
}

// runBare moves frames from one socket to another until it is done. A frame that
// the kernel does not take is lost, as on any link.
func runBare(from, to int, done *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b := make([]byte, ports.VirtioLen+packet.LargeBuffer); !done.Load(); {
		n, err := rawRead(from, b)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", bareName, err)
		}
		_, _ = rawWrite(to, b[:n])
	}
	return nil
}
