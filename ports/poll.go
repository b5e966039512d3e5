package ports

import (
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Poller puts a worker to sleep until one of its ports has a frame, and lets
// others wake it.
type Poller struct {
	wake int // eventfd
	fds  []unix.PollFd
}

// NewPoller makes a poller; Close ends it.
func NewPoller() (*Poller, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &Poller{wake: fd}, nil
}

// Wait sleeps in poll(2) until a port can be received from, Wake is called, or
// the time is up. A port without a descriptor shortens the sleep to a
// millisecond, since nobody announces its frames.
func (p *Poller) Wait(ports []Port, timeout time.Duration) error {
	p.fds = append(p.fds[:0], unix.PollFd{Fd: int32(p.wake), Events: unix.POLLIN})
	for _, port := range ports {
		if fd := port.FD(); fd >= 0 {
			p.fds = append(p.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		} else {
			timeout = min(timeout, time.Millisecond)
		}
	}
	n, err := unix.Poll(p.fds, int(timeout.Milliseconds()))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	if n > 0 && p.fds[0].Revents != 0 {
		var b [8]byte
		unix.Read(p.wake, b[:])
	}
	return nil
}

// Wake ends a Wait that is under way, or the next one.
func (p *Poller) Wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	unix.Write(p.wake, b[:])
}

// Close gives the descriptor back. Nobody may be waiting.
func (p *Poller) Close() error { return unix.Close(p.wake) }
