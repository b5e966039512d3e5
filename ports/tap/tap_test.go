package tap

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afpacket"
	"github.com/antrail/antrail/ports/porttest"
)

func openIn(t *testing.T, n *nstest.Namespace, o Options) *Port {
	t.Helper()
	var p *Port
	n.Do(t, func() {
		var err error
		if p, err = Open(o); err != nil {
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

func TestConformance(t *testing.T) {
	porttest.Run(t, func(t *testing.T) *porttest.Rig {
		host := nstest.New(t)
		p := openIn(t, host, Options{Name: "gw0"})
		wire := nstest.OpenWire(t, host, "gw0")
		pool := packet.NewPool(512, 2048)
		return &porttest.Rig{
			Port: p, Get: pool.Get,
			Free:   func() int { return pool.Free() + p.pool.Free() },
			Frames: 512 + DefaultFrames,
			Inject: func(b []byte) error {
				wire.Send(b) // the kernel says so when it drops, and counts
				return nil
			},
			Observe: wire.Receive,
			Backlog: 1200,
			Whole: func() (far ports.Port) {
				host.Do(t, func() {
					var err error
					if far, err = afpacket.Open(afpacket.Options{Interface: "gw0"}); err != nil {
						t.Fatal(err)
					}
				})
				t.Cleanup(func() { far.Close() })
				return far
			},
		}
	})
}

func TestOpenSetsAddressAndMTU(t *testing.T) {
	host := nstest.New(t)
	mac := [6]byte{0x02, 1, 2, 3, 4, 5}
	p := openIn(t, host, Options{Name: "gw0", MAC: mac, MTU: 1450})
	link := host.Link(t, "gw0").Attrs()
	if link.MTU != 1450 || [6]byte(link.HardwareAddr) != mac || link.Flags&net.FlagUp == 0 {
		t.Errorf("link is %+v", link)
	}
	info := p.Info()
	if info.MAC != mac || info.MTU != 1450 || !info.Up {
		t.Errorf("info is %+v", info)
	}
	host.Do(t, func() {
		_, err := Open(Options{Name: "gw0"})
		if err == nil || !strings.Contains(err.Error(), "gw0: a link of this name exists") {
			t.Errorf("second device of the name: %v", err)
		}
	})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := host.Links().LinkByName("gw0"); err == nil {
		t.Error("the device is there after Close")
	}
}

func TestOpenRefusals(t *testing.T) {
	host := nstest.New(t)
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Name: ""}, "1 to 15 bytes"},
		{Options{Name: "a-name-of-17-bytes"}, "1 to 15 bytes"},
		{Options{Name: "gw0", MTU: 10}, "MTU 10"},
		{Options{Name: "gw0", MAC: [6]byte{0x01}}, "address 01:00"},
	} {
		host.Do(t, func() {
			p, err := Open(c.options)
			if err == nil {
				p.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, want %q", c.options, err, c.want)
			}
		})
		if _, err := host.Links().LinkByName("gw0"); err == nil {
			t.Errorf("%+v: the device stays", c.options)
		}
	}
}

// A device deleted from outside takes the port down, without an error loop.
func TestDeviceDeleted(t *testing.T) {
	host := nstest.New(t)
	p := openIn(t, host, Options{Name: "gw0"})
	if err := host.Links().LinkDel(host.Link(t, "gw0")); err != nil {
		t.Fatal(err)
	}
	if n := p.Receive(make([]*packet.Frame, 4)); n != 0 {
		t.Errorf("received %d frames", n)
	}
	if p.Info().Up || p.FD() != -1 {
		t.Errorf("up %v, descriptor %d after the device is gone", p.Info().Up, p.FD())
	}
	f := packet.NewFrame(make([]byte, 512), nil)
	f.SetBytes(make([]byte, 60))
	p.Transmit([]*packet.Frame{f})
	if s := p.Stats(); s.Reasons[ports.TxLinkDown.String()] != 1 || s.RxErrors != 0 {
		t.Errorf("stats %+v: want one frame lost to the link", s)
	}
}

func TestLinkSetDown(t *testing.T) {
	host := nstest.New(t)
	p := openIn(t, host, Options{Name: "gw0"})
	if err := host.Links().LinkSetDown(host.Link(t, "gw0")); err != nil {
		t.Fatal(err)
	}
	f := packet.NewFrame(make([]byte, 512), nil)
	f.SetBytes(make([]byte, 60))
	p.Transmit([]*packet.Frame{f})
	if s := p.Stats(); p.Info().Up || s.Reasons[ports.TxLinkDown.String()] != 1 {
		t.Errorf("up %v, stats %+v: want down and one frame lost to the link", p.Info().Up, s)
	}
}

// The host's TCP comes through whole: two hosts, each with a tap, and a forwarder between them.
func TestTCPThroughTwoTaps(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	left := openIn(t, a, Options{Name: "gw0", MAC: [6]byte{2, 0, 0, 0, 0, 1}})
	right := openIn(t, b, Options{Name: "gw0", MAC: [6]byte{2, 0, 0, 0, 0, 2}})
	a.AddAddress(t, "gw0", "10.9.0.1/24")
	b.AddAddress(t, "gw0", "10.9.0.2/24")
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		runForward(left, right, done)
	}()
	defer func() { close(done); <-finished }()

	var server net.Listener
	var client net.Conn
	var err error
	b.Do(t, func() { server, err = net.Listen("tcp4", "10.9.0.2:80") })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	a.Do(t, func() { client, err = net.DialTimeout("tcp4", "10.9.0.2:80", 10*time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.SetDeadline(time.Now().Add(time.Minute))
	const size = 1 << 20
	go func() {
		if peer, err := server.Accept(); err == nil {
			io.CopyN(peer, peer, size)
			peer.Close()
		}
	}()
	go client.Write(make([]byte, size))
	if n, err := io.Copy(io.Discard, client); n != size || err != nil {
		t.Errorf("%d bytes of %d came back: %v", n, size, err)
	}
	if s := left.Stats(); s.RxPackets > size/1448 {
		t.Errorf("%d frames for %d bytes: they were cut on the way", s.RxPackets, size)
	}
}

func runForward(a, b *Port, done chan struct{}) {
	batch := make([]*packet.Frame, 32)
	for {
		select {
		case <-done:
			return
		default:
		}
		n := a.Receive(batch)
		b.Transmit(batch[:n])
		m := b.Receive(batch)
		a.Transmit(batch[:m])
		if n+m == 0 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}
