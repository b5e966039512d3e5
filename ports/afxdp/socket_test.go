package afxdp

import (
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	"golang.org/x/sys/unix"
)

// The socket that a worker waits for does not report room for frames to send, unless it drives
// the card's queue both ways.
func TestSendsApart(t *testing.T) {
	for name, c := range map[string]struct {
		busy  BusyPoll
		apart bool
	}{
		"apart":     {BusyPoll{}, true},
		"busy poll": {BusyPoll{Time: 20 * time.Microsecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, Options{Mode: Native, Ring: 64, BusyPoll: c.busy})
			s := p.port.socket
			if apart := s.out != s.fd; apart != c.apart {
				t.Fatalf("two sockets: %v, want %v", apart, c.apart)
			}
			if tells := writable(t, p.port.FD()); tells == c.apart {
				t.Errorf("the socket that is waited for tells of room: %v", tells)
			}
			if !writable(t, s.out) {
				t.Error("the socket that sends tells of no room")
			}
		})
	}
}

// TestOneCallSendsAPortion: no call that Go's scheduler cannot see sends a long
// queue, and kick sends all of it.
func TestOneCallSendsAPortion(t *testing.T) {
	const frames = 4 * portion
	p := newPair(t, Options{Mode: Native, Ring: frames})
	batch := make([]*packet.Frame, frames)
	if n := p.umem.Get(batch); n != frames {
		t.Fatalf("%d free frames, want %d", n, frames)
	}
	for _, f := range batch {
		f.SetBytes(testFrame(1))
	}
	if n := p.port.Transmit(batch); n != frames {
		t.Fatalf("%d frames accepted, want %d", n, frames)
	}
	s := p.port.socket
	_ = unix.Sendto(s.out, nil, unix.MSG_DONTWAIT, nil) // EAGAIN: there is more
	if sent := frames - int(s.tx.pending()); sent == 0 || sent > portion {
		t.Errorf("one call sent %d frames, want at most %d", sent, portion)
	}
	if err := s.kick(); err != nil || s.tx.pending() != 0 {
		t.Errorf("%d frames are left: %v", s.tx.pending(), err)
	}
}

// writable says whether poll(2) finds room for a frame to send.
func writable(t *testing.T, fd int) bool {
	t.Helper()
	list := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	if _, err := unix.Poll(list, 0); err != nil {
		t.Fatal(err)
	}
	return list[0].Revents&unix.POLLOUT != 0
}
