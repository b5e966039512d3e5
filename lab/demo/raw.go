package demo

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// rawSocket sends and captures whole frames on one link: AF_PACKET, which sees
// what arrives on the link and what is sent out of it. Go's own socket types do
// not know this family. It is for one goroutine.
type rawSocket struct{ fd int }

const (
	maxFrame  = 1 << 16
	rawBuffer = 8 << 20 // holds what a check sends before it reads
)

// raw opens a raw socket on a link of a pod, a Node or "underlay".
func (w *world) raw(name, link string) (*rawSocket, error) {
	var s *rawSocket
	err := w.in(name, func() (err error) {
		s, err = openRaw(link)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("raw socket on %s in %s: %w", link, name, err)
	}
	return s, nil
}

func openRaw(link string) (*rawSocket, error) {
	ifi, err := net.InterfaceByName(link)
	if err != nil {
		return nil, err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, rawBuffer),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: ifi.Index}),
	)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &rawSocket{fd}, nil
}

func (s *rawSocket) close() { unix.Close(s.fd) }

func (s *rawSocket) send(frame []byte) error {
	_, err := unix.Write(s.fd, frame)
	return err
}

// receive returns the next frame, or nil when none comes in time.
func (s *rawSocket) receive(timeout time.Duration) ([]byte, error) {
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
	deadline := time.Now().Add(timeout)
	for {
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline)).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return nil, nil
		}
		buf := make([]byte, maxFrame)
		if n, err = unix.Read(s.fd, buf); err != nil {
			return nil, err
		}
		return buf[:n], nil
	}
}

// drain returns the frames that have arrived.
func (s *rawSocket) drain() ([][]byte, error) {
	var all [][]byte
	for {
		f, err := s.receive(0)
		if f == nil || err != nil {
			return all, err
		}
		all = append(all, f)
	}
}
