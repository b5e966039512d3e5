// Package raw has the raw sockets of a lab's tests: whole frames on a link, and
// echo requests. A socket belongs to the network namespace of the thread that
// opened it, so callers open one inside lab.Namespace.Do.
//
//	raw.go   frames, by AF_PACKET
//	ping.go  echo requests and their replies, by raw ICMP sockets
package raw

import (
	"bytes"
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Socket sends and captures whole frames on one link, by AF_PACKET. It sees frames that the
// link receives and sends. Only one goroutine may use it.
type Socket struct {
	fd  int
	buf []byte // Receive copies frames out of it
}

const (
	maxFrame  = 1 << 16
	rawBuffer = 8 << 20 // bytes: all that a check sends before it reads
)

// Open opens a socket on a link of the calling thread's namespace.
func Open(link string) (*Socket, error) {
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
	return &Socket{fd: fd, buf: make([]byte, maxFrame)}, nil
}

// Close closes the socket.
func (s *Socket) Close() { unix.Close(s.fd) }

// Send sends one frame.
func (s *Socket) Send(frame []byte) error {
	_, err := unix.Write(s.fd, frame)
	return err
}

// Receive returns the next frame, or nil if none comes in time.
func (s *Socket) Receive(timeout time.Duration) ([]byte, error) {
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
		if n, err = unix.Read(s.fd, s.buf); err != nil {
			return nil, err
		}
		return bytes.Clone(s.buf[:n]), nil
	}
}

// Drain returns the frames that have arrived.
func (s *Socket) Drain() ([][]byte, error) {
	var all [][]byte
	for {
		f, err := s.Receive(0)
		if f == nil || err != nil {
			return all, err
		}
		all = append(all, f)
	}
}
