package uplink

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/afxdp"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tunnel"
	"github.com/vishvananda/netlink"
)

var _ ports.Port = (*Port)(nil)

var kinds = []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE}

// nodes are the addresses of two Nodes, by the family of the underlay.
var nodes = map[string][2]netip.Prefix{
	"IPv4": {netip.MustParsePrefix("192.168.77.101/24"), netip.MustParsePrefix("192.168.77.102/24")},
	"IPv6": {netip.MustParsePrefix("fd77::101/64"), netip.MustParsePrefix("fd77::102/64")},
}

// pair is a Node with the port, and another that has the kernel's way only.
type pair struct {
	a, b         *nstest.Namespace
	port         *Port
	far          *underlay.Port
	aAddr, bAddr netip.Addr
}

// wired are two namespaces with a wire between them.
func wired(t *testing.T, family string) *pair {
	t.Helper()
	p := &pair{a: nstest.New(t), b: nstest.New(t), aAddr: nodes[family][0].Addr(), bAddr: nodes[family][1].Addr()}
	nstest.AddVeth(t, p.a, "eth0", p.b, "eth1")
	for i, n := range []*nstest.Namespace{p.a, p.b} {
		link := []string{"eth0", "eth1"}[i]
		if family == "IPv6" {
			n.Sysctl(t, "net/ipv6/conf/"+link+"/disable_ipv6", "0")
		}
		n.Do(t, func() {
			l, err := netlink.LinkByName(link)
			if err == nil {
				address := nodes[family][i]
				err = netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: address.Addr().AsSlice(), Mask: net.CIDRMask(address.Bits(), address.Addr().BitLen())}, Flags: 0x02}) // nodad
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	return p
}

func open(t *testing.T, family string, kind tunnel.Kind) *pair {
	t.Helper()
	p := wired(t, family)
	p.openOn(t, "eth0", kind)
	return p
}

// openOn opens the ports of both Nodes, the one's on a link.
func (p *pair) openOn(t *testing.T, link string, kind tunnel.Kind) {
	t.Helper()
	p.openPort(t, link, kind)
	p.openFar(t, kind)
}

// openFar opens the other Node's port.
func (p *pair) openFar(t *testing.T, kind tunnel.Kind) {
	t.Helper()
	var err error
	p.b.Do(t, func() {
		p.far, err = underlay.Open(underlay.Config{Name: "tun0", Kind: kind, Local: p.bAddr, Peers: []underlay.Peer{{Address: p.aAddr}}, AnyNetwork: true, MTU: 1430})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.far.Close() })
}

// openPort opens the port on a link.
func (p *pair) openPort(t *testing.T, link string, kind tunnel.Kind) {
	t.Helper()
	memory := afxdp.NewMemory(256, 1)
	var err error
	p.a.Do(t, func() {
		p.port, err = Open(memory, Config{Link: link, Config: underlay.Config{Name: "tun0", Kind: kind, Local: p.aAddr, Peers: []underlay.Peer{{Address: p.bAddr}}, AnyNetwork: true, MTU: 1430}})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.port.Close(); err != nil {
			t.Error(err)
		}
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
}

// send has a port send a frame.
func send(t *testing.T, p ports.Port, to netip.Addr, frame *packet.Frame) {
	t.Helper()
	f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	f.CopyFrom(frame)
	f.Tunnel = packet.Tunnel{Dst: to, ID: 7}
	if p.Transmit([]*packet.Frame{f}) != 1 {
		t.Fatalf("not sent: %+v", p.Stats())
	}
	p.Flush()
}

func frameOf(b []byte) *packet.Frame {
	f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	f.SetBytes(b)
	return f
}

// arrives waits for a frame.
func arrives(t *testing.T, p ports.Port, want []byte, from, at netip.Addr) {
	t.Helper()
	batch := make([]*packet.Frame, 8)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		n := p.Receive(batch[:1])
		if n == 0 {
			continue
		}
		f := batch[0]
		if (f.Tunnel != packet.Tunnel{Src: from, Dst: at, ID: 7}) || !bytes.Equal(f.Bytes(), want) {
			t.Errorf("%d bytes came of %d, %+v", f.Len(), len(want), f.Tunnel)
		}
		packet.Release(batch[:n])
		return
	}
	t.Fatalf("nothing came: %+v", p.Stats())
}

// await waits until the port knows the other Node's MAC address, or does not.
func (p *pair) await(t *testing.T, mac net.HardwareAddr) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w, known := (*p.port.ways.now.Load())[p.bAddr]
		if known == (mac != nil) && (!known || bytes.Equal(w.to[:], mac)) {
			return
		}
	}
	t.Fatalf("the ways are %v, want one to %v", *p.port.ways.now.Load(), mac)
}

// cardSent and cardCame are packets that the card moved.
func (p *pair) cardSent() uint64 { return p.port.card.Stats().TxPackets }
func (p *pair) cardCame() uint64 { return p.port.card.Stats().RxPackets }

// TestBothWays: the first frame finds the neighbour by the kernel, further ones go
// by the card, and the other Node's kernel takes all: outer headers are sound.
func TestBothWays(t *testing.T) {
	for family := range nodes {
		for _, kind := range kinds {
			t.Run(family+"/"+kind.String(), func(t *testing.T) {
				p := open(t, family, kind)
				inner := pt.TCP4(pt.Options{Payload: []byte("by the kernel")})
				send(t, p.port, p.bAddr, frameOf(inner))
				arrives(t, p.far, inner, p.aAddr, p.bAddr)
				p.await(t, nstest.MAC("eth1"))
				before := p.cardSent()
				partial := pt.UDP6(pt.Options{Payload: []byte("sum")})
				for i, f := range []*packet.Frame{frameOf(pt.UDP4(pt.Options{Payload: make([]byte, 1402)})), frameOf(pt.TCP6(pt.Options{Payload: []byte("odd")})), frameOf(partial)} {
					send(t, p.port, p.bAddr, f)
					arrives(t, p.far, f.Bytes(), p.aAddr, p.bAddr)
					if got := p.cardSent() - before; got != uint64(i+1) {
						t.Fatalf("frame %d: %d went by the card", i, got)
					}
				}
				before = p.cardCame()
				send(t, p.far, p.aAddr, frameOf(inner))
				arrives(t, p.port, inner, p.bAddr, p.aAddr)
				if p.cardCame() != before+1 {
					t.Error("what came did not come by the card")
				}
				s := p.port.Stats()
				if s.TxPackets != 4 || s.RxPackets != 1 || s.TxErrors+s.TxDropped+s.RxErrors+s.RxDropped > 0 {
					t.Errorf("stats %+v", s)
				}
			})
		}
	}
}

// TestPartialChecksum: what a pod's kernel left undone is done before the card has
// the frame, and large segments go the whole way.
func TestPartialChecksum(t *testing.T) {
	p := open(t, "IPv4", tunnel.KindGeneve)
	send(t, p.port, p.bAddr, frameOf(pt.TCP4(pt.Options{})))
	arrives(t, p.far, pt.TCP4(pt.Options{}), p.aAddr, p.bAddr)
	p.await(t, nstest.MAC("eth1"))
	whole := pt.TCP4(pt.Options{Payload: []byte("payload"), TCPFlags: packet.TCPAck})
	undone := frameOf(whole)
	l := packet.ParseLayers(undone.Bytes())
	packet.TCP(undone.Bytes()[l.L4:]).SetChecksum(l.PseudoSum(undone.Bytes(), l.End-l.L4))
	packet.FindPartial(undone)
	before := p.cardSent()
	send(t, p.port, p.bAddr, undone)
	arrives(t, p.far, whole, p.aAddr, p.bAddr)
	if p.cardSent() != before+1 {
		t.Error("a frame with a partial checksum did not go by the card")
	}
	large := pt.Undone(pt.TCP4(pt.Options{Payload: make([]byte, 20_000), TCPFlags: packet.TCPAck}), 1300)
	send(t, p.port, p.bAddr, large)
	arrives(t, p.far, large.Bytes(), p.aAddr, p.bAddr)
	if p.cardSent() != before+1 {
		t.Error("segments went by the card")
	}
}

// TestTheRestIsTheHosts: everything but tunnel packets to us goes on to the kernel,
// and so do fragments of those, which arrive all the same.
func TestTheRestIsTheHosts(t *testing.T) {
	p := open(t, "IPv4", tunnel.KindGeneve)
	var server net.Listener
	var err error
	p.a.Do(t, func() { server, err = net.Listen("tcp", netip.AddrPortFrom(p.aAddr, 6081).String()) })
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p.b.Do(t, func() {
		c, err := net.DialTimeout("tcp", server.Addr().String(), 5*time.Second)
		if err != nil {
			t.Error(err)
			return
		}
		c.Close()
	})
	if out, err := p.b.Command("ping", "-c", "1", "-W", "5", p.aAddr.String()).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if n := p.cardCame(); n != 0 {
		t.Errorf("%d packets of the host came to the card's port", n)
	}
	l := p.b.Link(t, "eth1")
	if err := p.b.Links().LinkSetMTU(l, 1000); err != nil {
		t.Fatal(err)
	}
	inner := pt.UDP4(pt.Options{Payload: make([]byte, 1400)})
	send(t, p.far, p.aAddr, frameOf(inner))
	arrives(t, p.port, inner, p.bAddr, p.aAddr)
	if n := p.cardCame(); n != 0 {
		t.Errorf("%d fragments came to the card's port", n)
	}
}

// TestWaysFollowTheKernel: another MAC address is known as soon as the kernel has
// heard of it, and without a route there is no short cut.
func TestWaysFollowTheKernel(t *testing.T) {
	p := open(t, "IPv4", tunnel.KindGeneve)
	first, second := nstest.MAC("eth1"), net.HardwareAddr{2, 0, 0, 0, 9, 9}
	p.a.AddNeighbour(t, "eth0", p.bAddr.String(), first)
	p.await(t, first)
	l := p.b.Link(t, "eth1")
	if err := p.b.Links().LinkSetHardwareAddr(l, second); err != nil {
		t.Fatal(err)
	}
	if out, err := p.a.Command("ip", "neighbour", "replace", p.bAddr.String(), "lladdr", second.String(), "dev", "eth0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.await(t, second)
	inner := pt.TCP4(pt.Options{})
	send(t, p.port, p.bAddr, frameOf(inner))
	arrives(t, p.far, inner, p.aAddr, p.bAddr)
	if p.cardSent() != 1 {
		t.Error("it did not go by the card")
	}
	if out, err := p.a.Command("ip", "route", "add", "unreachable", p.bAddr.String()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.await(t, nil)
	p.port.SetPeers(nil)
	if len(*p.port.ways.now.Load()) != 0 {
		t.Error("a way to a Node that is none")
	}
}

// TestTooLongForTheWay: the sender of a packet too long for the link gets an answer, as through
// the underlay port.
func TestTooLongForTheWay(t *testing.T) {
	p := open(t, "IPv4", tunnel.KindGeneve)
	p.a.AddNeighbour(t, "eth0", p.bAddr.String(), nstest.MAC("eth1"))
	if err := p.a.Links().LinkSetMTU(p.a.Link(t, "eth0"), 1300); err != nil {
		t.Fatal(err)
	}
	inner := pt.UDP4(pt.Options{Payload: make([]byte, 1350)})
	ip := packet.IPv4(inner[packet.EthernetLen:])
	ip.SetFlagsOffset(packet.IPv4DontFragment)
	ip.UpdateChecksum()
	for end := time.Now().Add(time.Minute); len(p.port.Longs()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nobody is told: %+v", p.port.Stats())
		}
		f := frameOf(inner)
		f.Tunnel.Dst = p.bAddr
		p.port.Transmit([]*packet.Frame{f})
		p.port.Flush()
	}
}

// TestUnsummedOnTheCard: an outer UDP header over IPv6 may be without a checksum.
func TestUnsummedOnTheCard(t *testing.T) {
	p := open(t, "IPv6", tunnel.KindGeneve)
	wire := nstest.OpenWire(t, p.b, "eth1")
	inner := append(make([]byte, 8), pt.TCP4(pt.Options{})...)
	tunnel.KindGeneve.Init(inner, 7)
	b := pt.UDP6(pt.Options{EthDst: [6]byte(nstest.MAC("eth0")), Src: p.bAddr, Dst: p.aAddr, SrcPort: 9, DstPort: tunnel.GenevePort, Payload: inner})
	packet.UDP(b[packet.EthernetLen+packet.IPv6Len:]).SetChecksum(0)
	if err := wire.Send(b); err != nil {
		t.Fatal(err)
	}
	batch := make([]*packet.Frame, 4)
	for end := time.Now().Add(time.Minute); p.port.Receive(batch) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not received: %+v", p.port.Stats())
		}
	}
	if !bytes.Equal(batch[0].Bytes(), inner[8:]) {
		t.Errorf("received %x, want %x", batch[0].Bytes(), inner[8:])
	}
	packet.Release(batch[:1])
}

// TestRefusedOnTheCard sends what the kernel would not hand to a socket: it is
// dropped and counted here.
func TestRefusedOnTheCard(t *testing.T) {
	p := open(t, "IPv4", tunnel.KindGeneve)
	wire := nstest.OpenWire(t, p.b, "eth1")
	stranger := netip.MustParseAddr("192.168.77.200")
	inner := append(make([]byte, 8), pt.TCP4(pt.Options{})...)
	tunnel.KindGeneve.Init(inner, 7)
	good := pt.Options{EthDst: [6]byte(nstest.MAC("eth0")), Src: p.bAddr, Dst: p.aAddr, SrcPort: 9, DstPort: tunnel.GenevePort, Payload: inner}
	bad := func(change func(b []byte)) []byte {
		b := pt.UDP4(good)
		change(b)
		return b
	}
	from := good
	from.Src = stranger
	for reason, b := range map[string][]byte{
		"outer source is not a known Node":           pt.UDP4(from),
		"outer headers or their checksums are wrong": bad(func(b []byte) { b[24]++ }),
		tunnel.Version.String():                      pt.UDP4(pt.Options{EthDst: good.EthDst, Src: p.bAddr, Dst: p.aAddr, DstPort: tunnel.GenevePort, Payload: append([]byte{0x40}, inner[1:]...)}),
	} {
		if err := wire.Send(b); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); p.port.Stats().Reasons[reason] == 0; time.Sleep(time.Millisecond) {
			if n := p.port.Receive(make([]*packet.Frame, 4)); n > 0 || time.Now().After(end) {
				t.Fatalf("%d frames; want %q: %+v", n, reason, p.port.Stats())
			}
		}
	}
	if err := wire.Send(bad(func(b []byte) { b[len(b)-1]++ })); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); p.port.Stats().Reasons["outer headers or their checksums are wrong"] != 2; time.Sleep(time.Millisecond) {
		if n := p.port.Receive(make([]*packet.Frame, 4)); n > 0 || time.Now().After(end) {
			t.Fatalf("%d frames with a wrong UDP checksum: %+v", n, p.port.Stats())
		}
	}
}

// TestLinksThatAreNoCards are refused by name.
func TestLinksThatAreNoCards(t *testing.T) {
	p := wired(t, "IPv4")
	for _, args := range [][]string{
		{"link", "add", "br0", "type", "bridge"},
		{"link", "set", "eth0", "master", "br0"},
		{"link", "add", "vx0", "type", "vxlan", "id", "1", "dstport", "4789"},
	} {
		if out, err := p.a.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	memory := afxdp.NewMemory(256, 1)
	defer memory.Close()
	for link, want := range map[string]string{"br0": "is a bridge", "vx0": "is a vxlan", "eth0": "belongs to a bond or bridge", "eth9": "Link not found"} {
		p.a.Do(t, func() {
			port, err := Open(memory, Config{Link: link, Config: underlay.Config{Local: p.aAddr}})
			if err == nil {
				port.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), link) {
				t.Errorf("%s: %v, want %q", link, err, want)
			}
		})
	}
}

// TestSeveralCards: a Node that another card leads to is reached through the
// kernel, also when that changes while the port is open.
func TestSeveralCards(t *testing.T) {
	p := open(t, "IPv4", tunnel.KindVXLAN)
	p.a.AddNeighbour(t, "eth0", p.bAddr.String(), nstest.MAC("eth1"))
	p.await(t, nstest.MAC("eth1"))
	nstest.AddVeth(t, p.a, "eth2", p.b, "eth3")
	p.a.AddAddress(t, "eth2", "192.168.78.101/24")
	p.b.AddAddress(t, "eth3", "192.168.78.102/24")
	for n, args := range map[*nstest.Namespace][]string{
		p.a: {"route", "add", p.bAddr.String(), "via", "192.168.78.102", "src", p.aAddr.String()},
		p.b: {"route", "add", p.aAddr.String(), "via", "192.168.78.101", "src", p.bAddr.String()},
	} {
		if out, err := n.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
	p.await(t, nil)
	inner := pt.TCP4(pt.Options{Payload: []byte("by the other card")})
	send(t, p.port, p.bAddr, frameOf(inner))
	arrives(t, p.far, inner, p.aAddr, p.bAddr)
	send(t, p.far, p.aAddr, frameOf(inner))
	arrives(t, p.port, inner, p.bAddr, p.aAddr)
	if p.cardSent()+p.cardCame() != 0 {
		t.Errorf("%d and %d packets went by the card", p.cardSent(), p.cardCame())
	}
}

// Nothing is allocated for a frame that the card sends.
func TestNoAllocations(t *testing.T) {
	p := open(t, "IPv6", tunnel.KindGeneve)
	send(t, p.port, p.bAddr, frameOf(pt.TCP4(pt.Options{})))
	arrives(t, p.far, pt.TCP4(pt.Options{}), p.aAddr, p.bAddr)
	p.await(t, nstest.MAC("eth1"))
	inner := pt.UDP4(pt.Options{Payload: []byte("inner")})
	f := packet.NewFrame(make([]byte, 2048), nil)
	batch := []*packet.Frame{f}
	before := p.cardSent()
	n := testing.AllocsPerRun(50, func() {
		f.SetBytes(inner)
		f.Tunnel = packet.Tunnel{Dst: p.bAddr, ID: 7}
		batch[0] = f
		p.port.Transmit(batch)
		p.port.Flush()
	})
	if n != 0 || p.cardSent() < before+50 {
		t.Errorf("%v allocations a frame; %d of 51 went by the card", n, p.cardSent()-before)
	}
}
