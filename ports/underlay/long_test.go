package underlay

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
	"github.com/vishvananda/netlink"
)

// narrow is two ports of Nodes between which the way's MTU is 1300.
func narrow(t *testing.T, kind tunnel.Kind, nodes [2]netip.Addr) (a, b *Port) {
	t.Helper()
	ns := underlay(t, nodes)
	a = open(t, ns, Config{Kind: kind, Local: nodes[0], MTU: 2000, Peers: peersAt(nodes[1:]...)})
	b = open(t, ns, Config{Kind: kind, Local: nodes[1], MTU: 2000, Peers: peersAt(nodes[:1]...)})
	setLoopbackMTU(t, ns, 1300)
	return a, b
}

func setLoopbackMTU(t *testing.T, ns *nstest.Namespace, mtu int) {
	t.Helper()
	if err := ns.Links().LinkSetMTU(ns.Link(t, "lo"), mtu); err != nil {
		t.Fatal(err)
	}
}

// df sets the DF bit of an IPv4 frame.
func df(b []byte) []byte {
	ip := packet.IPv4(b[packet.EthernetLen:])
	ip.SetFlagsOffset(packet.IPv4DontFragment)
	ip.UpdateChecksum()
	return b
}

func payload(n int) pt.Options { return pt.Options{Payload: make([]byte, n)} }

// If a packet is too long for its way and must not be fragmented, Longs reports it with the way's
// MTU. If it may be fragmented, it arrives. Packets that fit stay unchanged.
func TestTooLongForTheWay(t *testing.T) {
	for family, nodes := range underlays {
		for _, kind := range kinds {
			t.Run(family+"/"+kind.String(), func(t *testing.T) { testTooLong(t, kind, nodes) })
		}
	}
}

func testTooLong(t *testing.T, kind tunnel.Kind, nodes [2]netip.Addr) {
	mtu := 1300 - kind.Overhead(nodes[0].Is6())
	for name, c := range map[string]struct {
		frame []byte
		told  bool
	}{
		"IPv4, DF, fits":            {df(pt.UDP4(payload(mtu - 28))), false},
		"IPv4, DF, one byte more":   {df(pt.UDP4(payload(mtu - 27))), true},
		"IPv4, fragmentable":        {pt.UDP4(payload(1900)), false},
		"IPv6, fits":                {pt.UDP6(payload(mtu - 48)), false},
		"IPv6, one byte more":       {pt.UDP6(payload(max(1280, mtu) - 47)), true},
		"IPv6, of the least length": {pt.UDP6(payload(1280 - 48)), false},
		"longer than the Node's":    {df(pt.UDP4(payload(2000))), true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := narrow(t, kind, nodes)
			sent := transmit(a, nodes[1], 7, c.frame)
			if !c.told {
				if got := receive(t, b, 1)[0]; sent != 1 || !bytes.Equal(got.Bytes(), c.frame) {
					t.Errorf("%d sent, %d bytes arrived of %d", sent, got.Len(), len(c.frame))
				}
			}
			wantTold(t, a, nodes[1], c.frame, c.told)
		})
	}
}

// wantTold checks what a port tells of a frame that was its only one.
func wantTold(t *testing.T, p *Port, to netip.Addr, frame []byte, told bool) {
	t.Helper()
	s := p.Stats()
	select {
	case l := <-p.Longs():
		if !told || !bytes.Equal(l.Frame, frame) || l.Node != to {
			t.Errorf("told of %d bytes to %v", len(l.Frame), l.Node)
		}
		if s.Reasons[ports.TxTooLong.String()] != 1 || s.TxPackets != 0 {
			t.Errorf("%+v", s)
		}
	default:
		if told || s.TxPackets != 1 || s.TxErrors+s.TxDropped > 0 {
			t.Errorf("told of nothing: %+v", s)
		}
	}
}

// PathMTU is the Node's own MTU, or less where the way is narrower, and follows
// the way.
func TestPathMTU(t *testing.T) {
	for _, nodes := range underlays {
		for _, kind := range kinds {
			ns := underlay(t, nodes)
			p := open(t, ns, Config{Kind: kind, Local: nodes[0], MTU: 1400, Peers: peersAt(nodes[1:]...)})
			inner := 1300 - kind.Overhead(nodes[0].Is6())
			for _, c := range []struct{ link, want int }{{65536, 1400}, {1300, inner}, {1500, min(1400, inner+200)}} {
				setLoopbackMTU(t, ns, c.link)
				if got := p.PathMTU(nodes[1]); got != c.want {
					t.Errorf("%v, %v: %d on a link of %d, want %d", kind, nodes[0], got, c.link, c.want)
				}
			}
			p.Close()
			if got := p.PathMTU(nodes[1]); got != 1400 {
				t.Errorf("%v, %v: %d once closed", kind, nodes[0], got)
			}
		}
	}
}

// The segments of a large frame that are too long are dropped, all of them counted
// and one of them told; long messages are sent again when the way is wide again.
func TestGSOMessageTooLong(t *testing.T) {
	nodes := underlays["IPv4"]
	ns := underlay(t, nodes)
	a := open(t, ns, Config{Local: local, MTU: 2000, Peers: peersAt(peer)})
	b := open(t, ns, Config{Local: peer, MTU: 2000, Peers: peersAt(local)})
	large := pt.Undone(df(pt.TCP4(pt.Options{Payload: make([]byte, 14_100), TCPFlags: packet.TCPAck})), 1400)
	send := func() int {
		f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
		f.CopyFrom(large)
		f.Tunnel.Dst = peer
		return a.Transmit([]*packet.Frame{f})
	}
	setLoopbackMTU(t, ns, 1300)
	send()
	if s := a.Stats(); s.Reasons[ports.TxTooLong.String()] != 10 || s.TxPackets != 1 {
		t.Errorf("%+v: want ten segments too long, and the rest of 100 bytes sent", s)
	}
	if n := len(a.Longs()); n != 1 {
		t.Fatalf("told %d times", n)
	}
	l := <-a.Longs()
	if got := packet.ParseLayers(l.Frame); got.End != len(l.Frame) || got.End-got.L3 != 1440 {
		t.Errorf("told of %d bytes, %+v", len(l.Frame), got)
	}
	packet.Release(receive(t, b, 1))
	setLoopbackMTU(t, ns, 1500)
	if send() != 1 || a.lanes[0].out.whole {
		t.Errorf("long messages are no longer sent: %+v", a.Stats())
	}
	if got := receive(t, b, 1)[0]; !bytes.Equal(got.Bytes(), large.Bytes()) {
		t.Errorf("%d bytes arrive of %d", got.Len(), large.Len())
	}
}

// Frames that left as one message are counted one by one where the kernel takes
// some of them only.
func TestSomeOfAMessageTooLong(t *testing.T) {
	a, b := narrow(t, tunnel.KindGeneve, underlays["IPv4"])
	var batch []*packet.Frame
	for _, n := range []int{1400, 600} {
		f := packet.NewFrame(make([]byte, 2048), nil)
		f.SetBytes(df(pt.UDP4(payload(n))))
		f.Tunnel.Dst = underlays["IPv4"][1]
		batch = append(batch, f)
	}
	if sent := a.Transmit(batch); sent != 1 {
		t.Errorf("%d frames were taken, want 1", sent)
	}
	if s := a.Stats(); s.TxPackets != 1 || s.TxSplit != 0 || s.Reasons[ports.TxTooLong.String()] != 1 {
		t.Errorf("%+v, want one sent, one too long and none parted", s)
	}
	packet.Release(receive(t, b, 1))
}

// Who does not listen costs a few frames and no more.
func TestLongsAreBounded(t *testing.T) {
	a, _ := narrow(t, tunnel.KindGeneve, underlays["IPv4"])
	frame := df(pt.UDP4(payload(1400)))
	for range 2 * maxLongs {
		transmit(a, peer, 7, frame)
	}
	f := packet.NewFrame(make([]byte, 2048), nil)
	one := []*packet.Frame{f}
	if n := testing.AllocsPerRun(20, func() {
		f.SetBytes(frame)
		f.Tunnel.Dst = peer
		a.Transmit(one)
	}); n != 0 {
		t.Errorf("%v allocations for a frame that nobody is told of", n)
	}
	if len(a.Longs()) != maxLongs {
		t.Errorf("%d frames are told of", len(a.Longs()))
	}
}

// If the narrow link is behind a router, the router reports it. Longs reports the following
// packets.
func TestRouterSaysTooLong(t *testing.T) {
	a, router, b := nstest.New(t), nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "eth0", router, "r0")
	nstest.AddVeth(t, router, "r1", b, "eth1")
	router.Sysctl(t, "net/ipv4/ip_forward", "1")
	for _, e := range []struct {
		ns       *nstest.Namespace
		link, at string
		via      string
	}{{router, "r0", "10.1.0.1/24", ""}, {router, "r1", "10.2.0.1/24", ""}, {a, "eth0", "10.1.0.2/24", "10.1.0.1"}, {b, "eth1", "10.2.0.2/24", "10.2.0.1"}} {
		e.ns.AddAddress(t, e.link, e.at)
		if e.via != "" {
			if err := e.ns.Links().RouteAdd(&netlink.Route{LinkIndex: e.ns.Link(t, e.link).Attrs().Index, Gw: net.ParseIP(e.via)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := router.Links().LinkSetMTU(router.Link(t, "r1"), 1300); err != nil {
		t.Fatal(err)
	}
	far := netip.MustParseAddr("10.2.0.2")
	p := open(t, a, Config{Local: netip.MustParseAddr("10.1.0.2"), Peers: peersAt(far)})
	for end := time.Now().Add(time.Minute); len(p.Longs()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nothing is told of: %+v", p.Stats())
		}
		transmit(p, far, 7, df(pt.UDP4(payload(1400))))
	}
	if got, want := p.PathMTU(far), 1300-tunnel.KindGeneve.Overhead(false); got != want {
		t.Errorf("the way takes %d bytes, want %d", got, want)
	}
}
