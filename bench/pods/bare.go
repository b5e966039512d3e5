package pods

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"golang.org/x/sys/unix"
)

// Contender "bare packet sockets" only moves frames between two pods' veths over packet sockets. Its rate
// is the limit for any switch on packet sockets. It has the sockets of ports/afpacket with all their
// options, and the program that keeps frames from the Node's stack. A virtio-net header and its segment
// of up to 64 kB go from one socket to the other unchanged.
//
// A thread each way waits in read(2) and write(2), with a buffer that stays in the caches. Others were no
// faster: recvmmsg and sendmmsg with up to 64 frames, the same in C, and PACKET_QDISC_BYPASS. One thread
// for both ways needs poll(2) and moved a quarter less of eight streams. Two ports of ports/afpacket
// with a thread and poll(2) each took 5 % more processor time, most of it for poll.
//
// It is the best case of streams only. Threads that sleep at once answer late, and a round trip would
// show nothing else.

// bareForwarder is two threads between the sockets of two ports.
type bareForwarder struct {
	in, out  *afpacket.Port
	done     atomic.Bool
	ended    chan error
	giveBack func()
}

// openBare opens two pods with a bareForwarder between them. It rests.
func openBare() (*pair, error) {
	n, err := testbed.NewNode(2)
	if err != nil {
		return nil, err
	}
	err = errors.Join(n.AddPod(n.Pods[0], testbed.InLink, plainClient+"/24", nil), n.AddPod(n.Pods[1], testbed.OutLink, plainServer+"/24", nil))
	b := &bareForwarder{ended: make(chan error)}
	if err == nil {
		err = testbed.Within(n.NS)(b.openPorts)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", bareName, err), n.Close())
	}
	p := nodePair(n, bareName, n.Pods[0], n.Pods[1])
	p.only, p.setResting = "stream", b.setResting
	p.close = func() error { return errors.Join(b.in.Close(), b.out.Close(), n.Close()) }
	for _, port := range []*afpacket.Port{b.in, b.out} {
		err = errors.Join(err, makeBlocking(port.FD(), bareTimeout))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", bareName, err), p.close())
	}
	return p, nil
}

// bareTimeout is how long a read waits. Threads that shall end see it as late.
const bareTimeout = 20 * time.Millisecond

// openPorts opens packet sockets on both links of the Node.
func (b *bareForwarder) openPorts() (err error) {
	if b.in, err = afpacket.Open(afpacket.Options{Interface: testbed.InLink}); err != nil {
		return err
	}
	if b.out, err = afpacket.Open(afpacket.Options{Interface: testbed.OutLink}); err != nil {
		return errors.Join(err, b.in.Close())
	}
	return nil
}

// setResting ends the threads or begins them. Frames that come meanwhile wait in the sockets.
func (b *bareForwarder) setResting(yes bool) error {
	if yes {
		b.done.Store(true)
		err := errors.Join(<-b.ended, <-b.ended)
		b.giveBack()
		return err
	}
	b.done.Store(false)
	b.giveBack = sched.LendProcessors(2)
	in, out := b.in.FD(), b.out.FD()
	go func() { b.ended <- runBare(in, out, &b.done) }()
	go func() { b.ended <- runBare(out, in, &b.done) }()
	return nil
}

// runBare moves frames from one socket to another until done. A frame that the kernel does not take is
// dropped, as on any link.
func runBare(from, to int, done *atomic.Bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b := make([]byte, ports.VirtioLen+packet.LargeBuffer); !done.Load(); {
		n, err := sched.RawRead(from, b)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", bareName, err)
		}
		_, _ = sched.RawWrite(to, b[:n])
	}
	return nil
}
