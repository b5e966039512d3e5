package afxdp

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/porttest"
	"golang.org/x/sys/unix"
)

// umemFor makes a UMEM that is closed, and so checked, at the test's end.
func umemFor(t *testing.T, frames int) *UMEM {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("sockets of AF_XDP need root")
	}
	u, err := NewUMEM(frames)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

// openIn opens a port in a namespace and closes it at the test's end.
func openIn(t *testing.T, n *nstest.Namespace, u *UMEM, o Options) *Port {
	t.Helper()
	var p *Port
	n.Do(t, func() {
		var err error
		if p, err = Open(u, o); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// pair is a port on one end of a veth, in a namespace of its own, and the wire
// at the other end.
type pair struct {
	node, pod *nstest.Namespace
	umem      *UMEM
	port      *Port
	wire      *nstest.Wire
}

func newPair(t *testing.T, o Options) *pair {
	t.Helper()
	return newPairOf(t, 1500, o)
}

// newPairOf is newPair with another MTU.
func newPairOf(t *testing.T, mtu int, o Options) *pair {
	t.Helper()
	p := &pair{node: nstest.New(t), pod: nstest.New(t)}
	nstest.AddVeth(t, p.node, "sw0", p.pod, "eth0")
	setMTU(t, mtu, p.node, "sw0", p.pod, "eth0")
	p.umem = umemFor(t, 2048)
	o.Interface = "sw0"
	p.port = openIn(t, p.node, p.umem, o)
	p.wire = nstest.OpenWire(t, p.pod, "eth0")
	return p
}

// send sends a frame from the pod. The queue inside a veth is short, and its
// reader, a softirq, may be late on a busy machine: that is waited out.
func (p *pair) send(frame []byte) error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := p.wire.Send(frame)
		if !errors.Is(err, unix.ENOBUFS) || time.Now().After(end) {
			return err
		}
	}
}

// wholeIn opens a packet socket, which tells what is undone of frames.
func wholeIn(t *testing.T, n *nstest.Namespace, link string) (p ports.Port) {
	t.Helper()
	n.Do(t, func() {
		var err error
		if p, err = afpacket.Open(afpacket.Options{Interface: link}); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { p.Close() })
	return p
}

// A frame that has no room in front for a request is copied, and leaves as any
// other.
func TestFrameWithoutHeadroom(t *testing.T) {
	p := newPair(t, Options{Mode: Native, Ring: 64})
	one := make([]*packet.Frame, 1)
	p.umem.Get(one)
	one[0].SetBounds(0, copy(one[0].Buffer(), testFrame(7)))
	if n := p.port.Transmit(one); n != 1 {
		t.Fatalf("refused: %+v", p.port.Stats())
	}
	p.port.Flush()
	for {
		b, err := p.wire.Receive(time.Minute)
		if err != nil || b == nil {
			t.Fatalf("nothing arrived (%v): %+v", err, p.port.Stats())
		}
		if bytes.Equal(b, testFrame(7)) {
			return
		}
	}
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		mtu     int
		options Options
		mode    string
	}{
		"native":        {1500, Options{Mode: Native}, "native, copy"},
		"native, 9000":  {9000, Options{Mode: Native}, "native, copy"},
		"generic":       {1500, Options{Mode: Generic}, "generic, copy"},
		"generic, 9000": {9000, Options{Mode: Generic}, "generic, copy"},
		"busy poll":     {1500, Options{Mode: Native, BusyPoll: BusyPoll{Time: 20 * time.Microsecond, Budget: 64}}, "native, copy"},
	} {
		t.Run(name, func(t *testing.T) {
			porttest.Run(t, func(t *testing.T) *porttest.Rig {
				c.options.Ring = 256
				p := newPairOf(t, c.mtu, c.options)
				if got := p.port.Info().Mode; got != c.mode {
					t.Fatalf("mode %q, want %q", got, c.mode)
				}
				return &porttest.Rig{
					Port: p.port, Get: p.umem.Get,
					Free:    func() int { return p.umem.Free() + p.umem.large.Free() },
					Frames:  p.umem.Frames() + largeFrames,
					Inject:  p.send,
					Observe: p.wire.Receive,
					Backlog: 600,
					Whole:   func() ports.Port { return wholeIn(t, p.pod, "eth0") },
				}
			})
		})
	}
}
