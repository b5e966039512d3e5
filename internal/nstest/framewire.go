package nstest

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Wire sends and receives whole Ethernet frames on a link, by an AF_PACKET socket. Send and
// Receive may be used by two goroutines.
type Wire struct{ fd int }

// OpenWire opens a wire on a link of the namespace; the test's end closes it. It sees received
// frames, not those that are sent on the link.
func OpenWire(t testing.TB, n *Namespace, link string) *Wire {
	t.Helper()
	index := n.Link(t, link).Attrs().Index
	w := &Wire{fd: -1}
	n.Do(t, func() {
		var err error
		if w.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
			t.Fatalf("packet socket: %v", err)
		}
	})
	t.Cleanup(func() { unix.Close(w.fd) })
	if err := w.bind(index); err != nil {
		t.Fatalf("packet socket on %s: %v", link, err)
	}
	return w
}

func (w *Wire) bind(index int) error {
	const buffer = 16 << 20
	return errors.Join(
		unix.SetsockoptInt(w.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer),
		unix.SetsockoptInt(w.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer),
		unix.Bind(w.fd, &unix.SockaddrLinklayer{Ifindex: index, Protocol: networkOrder(unix.ETH_P_ALL)}),
	)
}

func networkOrder(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// Send puts one frame on the wire.
func (w *Wire) Send(frame []byte) error {
	_, err := unix.Write(w.fd, frame)
	return err
}

// Receive waits for a frame for at most a time. It returns nil if none came, or if the link is
// gone.
func (w *Wire) Receive(wait time.Duration) ([]byte, error) {
	fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
	for end := time.Now().Add(wait); ; {
		n, err := unix.Poll(fds, max(0, int(time.Until(end).Milliseconds())))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			return nil, err
		}
		frame := make([]byte, 1<<16)
		n, err = unix.Read(w.fd, frame)
		if errors.Is(err, unix.ENETDOWN) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return frame[:n], nil
	}
}
