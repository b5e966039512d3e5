//go:build linux

package ports

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Poller reports to a worker which of its ports have frames, and lets the worker sleep until one
// has. The kernel keeps the list of ports (epoll(7), level triggered). So the cost of a call
// depends on the ready ports, not on the number of all ports. Any goroutine may call Watch,
// Unwatch and Wake while another one is in Wait.
type Poller struct {
	epoll  int
	wake   int // eventfd
	events [32]unix.EpollEvent
}

// wakeMark marks the poller's own descriptor, in the half of an event's word that a port's number
// does not use.
const wakeMark = 1

// ErrNoDescriptor is Watch's error for a port that epoll cannot watch.
var ErrNoDescriptor = errors.New("the port has no descriptor to wait for")

// NewPoller makes a poller; the caller must close it.
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

// Watch makes Wait report no if the port has frames or an error to receive. The error is
// ErrNoDescriptor for a port without a descriptor.
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

// Unwatch ends watching a port. A closed port does not need it, because its descriptor is gone; a
// Wait under way does not keep it.
func (p *Poller) Unwatch(port Port) {
	if fd := port.FD(); fd >= 0 {
		_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil) // ENOENT: it was not watched
	}
}

// Wait sleeps until a port has frames, Wake is called or the timeout has passed. With a timeout
// of 0 it does not sleep. It appends the numbers of at most 32 ready ports; the next call returns
// the others.
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

// LetOthersRun yields the calling thread's processor to a waiting thread, if there is one
// (sched_yield(2)).
func LetOthersRun() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Wake ends a Wait that is under way, or the next one.
func (p *Poller) Wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	unix.Write(p.wake, b[:])
}

// Close closes the descriptors. No goroutine may be in Wait.
func (p *Poller) Close() error { return errors.Join(unix.Close(p.wake), unix.Close(p.epoll)) }

// CloseAll closes descriptors that another process has handed over.
func CloseAll(fds []int) error {
	var errs []error
	for _, fd := range fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}
