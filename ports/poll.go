//go:build linux

package ports

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Poller tells a worker which of its ports have frames, and puts it to sleep until one
// has. The kernel keeps the list of ports (epoll(7), level triggered). So the cost of a
// call follows from the ports that are ready, not from all there are. Watch, Unwatch and
// Wake may be called from any goroutine while one is in Wait.
type Poller struct {
	epoll  int
	wake   int // eventfd
	events [32]unix.EpollEvent
}

// wakeMark tells the poller's own descriptor from those of ports, in the half
// of an event's word that a port's number does not take.
const wakeMark = 1

// ErrNoDescriptor is Watch's answer for a port that nobody announces frames of.
var ErrNoDescriptor = errors.New("the port has no descriptor to wait for")

// NewPoller makes a poller; Close ends it.
func NewPoller() (*Poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(epoll))
	}
	p := &Poller{epoll: epoll, wake: wake}
	if err := p.watch(wake, unix.EpollEvent{Events: unix.EPOLLIN, Pad: wakeMark}); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Watch has Wait answer no when the port has frames, or an error to be
// received. A port without a descriptor is ErrNoDescriptor.
func (p *Poller) Watch(no uint32, port Port) error {
	fd := port.FD()
	if fd < 0 {
		return ErrNoDescriptor
	}
	return p.watch(fd, unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(no)})
}

func (p *Poller) watch(fd int, e unix.EpollEvent) error {
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fmt.Errorf("watch descriptor %d: %w", fd, err)
	}
	return nil
}

// Unwatch ends that. A port that is closed needs none, for its descriptor is
// gone; a Wait under way does not keep it.
func (p *Poller) Unwatch(port Port) {
	if fd := port.FD(); fd >= 0 {
		_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil) // ENOENT: it was not watched
	}
}

// Wait sleeps until a port has frames, Wake is called or the time is up, with a
// timeout of 0 not at all. It appends the numbers of the ports that are ready,
// 32 at most; the others come with the next call.
func (p *Poller) Wait(ready []uint32, timeout time.Duration) ([]uint32, error) {
	n, err := unix.EpollWait(p.epoll, p.events[:], int(timeout.Milliseconds()))
	if err != nil {
		if errors.Is(err, unix.EINTR) {
			err = nil
		}
		return ready, err
	}
	for _, e := range p.events[:n] {
		if e.Pad == wakeMark {
			var b [8]byte
			unix.Read(p.wake, b[:])
			continue
		}
		ready = append(ready, uint32(e.Fd))
	}
	return ready, nil
}

// LetOthersRun gives the calling thread's processor to another thread that waits
// for it, if there is one (sched_yield(2)).
func LetOthersRun() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Wake ends a Wait that is under way, or the next one.
func (p *Poller) Wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	unix.Write(p.wake, b[:])
}

// Close gives the descriptors back. Nobody may be waiting.
func (p *Poller) Close() error { return errors.Join(unix.Close(p.wake), unix.Close(p.epoll)) }
