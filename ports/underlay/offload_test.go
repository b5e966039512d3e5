package underlay

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// wireNet is Nodes on a wire, and one behind a router there, over IPv4 or IPv6.
type wireNet struct {
	nodes  [2]netip.Addr
	remote netip.Addr
	bits   string
}

var (
	wire4 = &wireNet{[2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}, netip.MustParseAddr("198.51.100.7"), "/24"}
	wire6 = &wireNet{[2]netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")}, netip.MustParseAddr("2001:db8:7::7"), "/64"}
	wires = []*wireNet{wire4, wire6}
)

func (n *wireNet) over6() bool { return n == wire6 }

// onWire is a port on a link that a program may be attached to, and the wire's other end.
func onWire(t *testing.T, kind tunnel.Kind, n *wireNet) (ns *nstest.Namespace, p *Port, wire *nstest.Wire) {
	t.Helper()
	ns, far := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, ns, "eth0", far, "far")
	ns.AddAddress(t, "eth0", n.nodes[0].String()+n.bits)
	ns.SetUp(t, "eth0")
	far.SetUp(t, "far")
	ns.AddNeighbour(t, "eth0", n.nodes[1].String(), nstest.MAC("far"))
	return ns, open(t, ns, n.config(t, kind)), nstest.OpenWire(t, far, "far")
}

func (n *wireNet) config(t *testing.T, kind tunnel.Kind) Config {
	t.Helper()
	next, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Apache-2.0", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.Close() })
	pods := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	return Config{
		Kind: kind, Local: n.nodes[0], MTU: 1450, Unwrap: next, Pods: pods("10.10.0.0/24"),
		Peers: []Peer{{Address: n.nodes[1], Pods: pods("10.10.1.0/24")}, {Address: n.remote, Pods: pods("10.10.2.0/24")}},
	}
}

func attached(t *testing.T, ns *nstest.Namespace) (n int) {
	t.Helper()
	ns.Do(t, func() {
		r, err := link.QueryPrograms(link.QueryOptions{Target: ns.Link(t, "eth0").Attrs().Index, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			t.Fatal(err)
		}
		n = len(r.Programs)
	})
	return n
}

var tunnelKinds = []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE}

// TestOffloadWay: the outer headers that the kernel's programs write are those of the packet
// that the port itself sends, but for the lengths, the sums, IPv4's identification and IPv6's
// flow label.
func TestOffloadWay(t *testing.T) {
	for _, n := range wires {
		for _, kind := range tunnelKinds {
			ns, p, wire := onWire(t, kind, n)
			inner := pt.TCP4(pt.Options{Src: pt.Addr("10.10.0.5"), Dst: pt.Addr("10.10.1.6"), Payload: []byte("hello")})
			w, ok := p.OffloadWay(inner, &packet.Tunnel{Dst: n.nodes[1], ID: 7})
			if want := kindParts(kind, n.nodes[0]) | ports.OffloadWrap; !ok || int(w.Link) != ns.Link(t, "eth0").Attrs().Index || p.Info().OffloadLink != w.Link || w.Parts != want {
				t.Fatalf("%v: %v, %+v", kind, ok, w)
			}
			if want := 1500 - kind.Overhead(n.over6()) + packet.EthernetLen; w.MaxFrame != min(want, 1468) {
				t.Errorf("%v: frames of %d bytes", kind, w.MaxFrame)
			}
			if transmit(p, n.nodes[1], 7, inner) != 1 {
				t.Fatal("not sent")
			}
			head := outerOn(t, wire, n.nodes[0])[packet.EthernetLen:][:kind.Overhead(n.over6())]
			want := bytes.Clone(w.Outer[:len(head)])
			if n.over6() {
				sameBut6(t, kind, head, want)
			} else {
				sameBut4(t, kind, head, want)
			}
			if !bytes.Equal(head, want) {
				t.Errorf("%v: sent\n%x, the kernel would write\n%x", kind, head, want)
			}
		}
	}
}

// sameBut4 checks what differs in outer headers over IPv4, and makes it equal.
func sameBut4(t *testing.T, kind tunnel.Kind, sent, want []byte) {
	t.Helper()
	ip := packet.IPv4(bytes.Clone(want[:packet.IPv4Len]))
	clear(ip[10:12])
	if sum := packet.Sum(ip, 0); want[10] != byte(sum>>8) || want[11] != byte(sum) {
		t.Errorf("the sum is %x, want %x", want[10:12], sum)
	}
	if packet.IPv4(sent).FlagsOffset() != packet.IPv4DontFragment {
		t.Errorf("the port sends flags %x", packet.IPv4(sent).FlagsOffset())
	}
	clear(sent[2:6]) // total length, identification
	copy(sent[10:12], want[10:12])
	if kind.Port() != 0 {
		clear(sent[packet.IPv4Len+4:][:4])
	}
}

// sameBut6 is sameBut4 for IPv6.
func sameBut6(t *testing.T, kind tunnel.Kind, sent, want []byte) {
	t.Helper()
	if packet.IPv6(want).FlowLabel() == 0 {
		t.Error("no flow label")
	}
	packet.IPv6(want).SetFirst(0, packet.IPv6(sent).FlowLabel())
	clear(sent[4:6]) // payload length
	if kind.Port() != 0 {
		if packet.UDP(sent[packet.IPv6Len:]).Checksum() == 0 {
			t.Error("the port sends no checksum")
		}
		clear(sent[packet.IPv6Len+4:][:4])
	}
}

// outerOn is the next packet from a Node to another.
func outerOn(t *testing.T, wire *nstest.Wire, from netip.Addr) []byte {
	t.Helper()
	for {
		b, err := wire.Receive(5 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		l := packet.ParseLayers(b)
		is4 := l.EtherType == packet.EtherTypeIPv4 && len(b) > 34 && packet.IPv4(b[14:]).Src() == from
		is6 := l.EtherType == packet.EtherTypeIPv6 && len(b) > 54 && packet.IPv6(b[14:]).Src() == from && l.Proto != packet.ProtoICMPv6
		if is4 || is6 {
			return b
		}
	}
}

// TestUnsummed: what the programs of another Node send over IPv6 has no UDP checksum, and the
// sockets take it, but nothing with a wrong checksum.
func TestUnsummed(t *testing.T) {
	n := wire6
	for _, kind := range []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN} {
		_, p, wire := onWire(t, kind, n)
		send := func(payload string, checksum func(packet.UDP)) (inner []byte) {
			inner = pt.UDP4(pt.Options{Src: pt.Addr("10.10.1.6"), Dst: pt.Addr("10.10.0.5"), Payload: []byte(payload)})
			datagram := append(make([]byte, tunnel.HeaderLen), inner...)
			kind.Init(datagram, 0)
			b := pt.UDP6(pt.Options{EthDst: [6]byte(nstest.MAC("eth0")), Src: n.nodes[1], Dst: n.nodes[0], SrcPort: 40000, DstPort: kind.Port(), Payload: datagram})
			checksum(packet.UDP(b[packet.EthernetLen+packet.IPv6Len:]))
			if err := wire.Send(b); err != nil {
				t.Fatal(err)
			}
			return inner
		}
		send("wrong", func(h packet.UDP) { h.SetChecksum(h.Checksum() ^ 1) })
		none := send("none", func(h packet.UDP) { h.SetChecksum(0) })
		right := send("right", func(packet.UDP) {})
		for i, f := range receive(t, p, 2) {
			if want := [][]byte{none, right}[i]; !bytes.Equal(f.Bytes(), want) {
				t.Errorf("%v: received %x, want %x", kind, f.Bytes(), want)
			}
		}
	}
}

// TestOffloadFrom: what the port would not receive, the kernel does not take.
func TestOffloadFrom(t *testing.T) {
	for _, n := range wires {
		_, p, _ := onWire(t, tunnel.KindGeneve, n)
		p.config.AnyNetwork = false
		from := func(src string) []byte { return pt.UDP4(pt.Options{Src: pt.Addr(src), Dst: pt.Addr("10.10.0.5")}) }
		for name, test := range map[string]struct {
			src   string
			outer packet.Tunnel
			want  bool
		}{
			"its own pod":     {"10.10.1.6", packet.Tunnel{Src: n.nodes[1], Dst: n.nodes[0]}, true},
			"nobody's":        {"203.0.113.9", packet.Tunnel{Src: n.nodes[1], Dst: n.nodes[0]}, true},
			"our pod":         {"10.10.0.6", packet.Tunnel{Src: n.nodes[1], Dst: n.nodes[0]}, false},
			"another's pod":   {"10.10.2.6", packet.Tunnel{Src: n.nodes[1], Dst: n.nodes[0]}, false},
			"no Node":         {"10.10.1.6", packet.Tunnel{Src: n.nodes[1].Next(), Dst: n.nodes[0]}, false},
			"another network": {"10.10.1.6", packet.Tunnel{Src: n.nodes[1], Dst: n.nodes[0], ID: 7}, false},
			"no way back":     {"10.10.2.6", packet.Tunnel{Src: n.remote, Dst: n.nodes[0]}, false},
		} {
			w, ok := p.OffloadFrom(from(test.src), &test.outer)
			if ok != test.want {
				t.Errorf("%s: %v", name, ok)
			}
			if ok {
				n.checkFrom(t, &w)
			}
		}
	}
}

// checkFrom checks what the programs compare of a packet of Geneve from the other Node.
func (n *wireNet) checkFrom(t *testing.T, w *ports.OffloadWay) {
	t.Helper()
	addrs, l4, parts := w.Outer[12:20], w.Outer[20:], ports.OffloadUnwrap
	if n.over6() {
		addrs, l4, parts = w.Outer[8:40], w.Outer[40:], ports.OffloadUnwrap|ports.OffloadOver6
	}
	if want := append(n.nodes[1].AsSlice(), n.nodes[0].AsSlice()...); !bytes.Equal(addrs, want) || w.Parts != parts {
		t.Errorf("parts %x, addresses %x, want %x", w.Parts, addrs, want)
	}
	if want := []byte{0x17, 0xc1}; !bytes.Equal(l4[2:4], want) {
		t.Errorf("port %x, want %x", l4[2:4], want)
	}
	if want := []byte{0, 0, 0x65, 0x58, 0, 0, 0, 0}; !bytes.Equal(l4[8:16], want) {
		t.Errorf("header %x, want %x", l4[8:16], want)
	}
}

// TestOffloadChanges: every change of something that a way depends on is reported, and nothing
// else.
func TestOffloadChanges(t *testing.T) {
	for _, n := range wires {
		n.testChanges(t)
	}
}

func (n *wireNet) testChanges(t *testing.T) {
	t.Helper()
	ns, p, _ := onWire(t, tunnel.KindVXLAN, n)
	var told atomic.Int32
	p.WhenChanged(func() { told.Add(1) })
	inner, to := pt.UDP4(pt.Options{}), &packet.Tunnel{Dst: n.nodes[1]}
	way := func() bool { _, ok := p.OffloadWay(inner, to); return ok }
	peers := p.config.Peers
	if !way() || told.Load() != 0 {
		t.Fatalf("told %d times", told.Load())
	}
	step := func(what string, want int32, still bool, do func()) {
		t.Helper()
		before := told.Load()
		do()
		if n := told.Load() - before; n != want || way() != still {
			t.Errorf("%s: told %d times, want %d; there is a way: %v", what, n, want, !still)
		}
	}
	step("the same Nodes", 0, true, func() { p.SetPeers(peers) })
	step("a silent Node", 1, false, func() { p.SetSilent(n.nodes[1:]) })
	step("the same silent Node", 0, false, func() { p.SetSilent(n.nodes[1:]) })
	step("it answers", 1, true, func() { p.SetSilent(nil) })
	step("an Egress", 1, true, func() { ns.Do(t, func() { _ = p.SetEgresses(nil, []netip.Addr{n.remote}) }) })
	step("the same Egress", 0, true, func() { ns.Do(t, func() { _ = p.SetEgresses(nil, []netip.Addr{n.remote}) }) })
	step("no Node", 1, false, func() { p.SetPeers(peers[1:]) })
	step("all Nodes", 1, true, func() { p.SetPeers(peers) })
	step("a lower MTU", 1, true, func() {
		before := told.Load()
		eth0 := ns.Link(t, "eth0")
		if err := ns.Links().LinkSetMTU(eth0, 1400); err != nil {
			t.Fatal(err)
		}
		nstest.Until(t, "the port to tell", func() bool { return told.Load() > before })
	})
	if w, _ := p.OffloadWay(inner, to); w.MaxFrame != 1400-tunnel.KindVXLAN.Overhead(n.over6())+packet.EthernetLen {
		t.Errorf("frames of %d bytes", w.MaxFrame)
	}
	step("a link that is down", 1, false, func() {
		before := told.Load()
		if err := ns.Links().LinkSetDown(ns.Link(t, "eth0")); err != nil {
			t.Fatal(err)
		}
		nstest.Until(t, "the port to tell", func() bool { return told.Load() > before })
	})
}

// TestOffloadByRouter: if a router leads to a Node, the next hop is the router. A route into a
// tunnel of the kernel's own cannot be used.
func TestOffloadByRouter(t *testing.T) {
	for n, router := range map[*wireNet]netip.Addr{wire4: wire4.nodes[1], wire6: netip.MustParseAddr("fe80::99")} {
		n.testRouter(t, router)
	}
}

func (n *wireNet) testRouter(t *testing.T, router netip.Addr) {
	t.Helper()
	ns, p, _ := onWire(t, tunnel.KindGeneve, n)
	inner, to := pt.UDP4(pt.Options{}), &packet.Tunnel{Dst: n.remote}
	if _, ok := p.OffloadWay(inner, to); ok {
		t.Error("there is a way without a route")
	}
	route := &netlink.Route{Dst: netlink.NewIPNet(n.remote.AsSlice()), Gw: router.AsSlice(), LinkIndex: ns.Link(t, "eth0").Attrs().Index}
	if err := ns.Links().RouteAdd(route); err != nil {
		t.Fatal(err)
	}
	w, ok := p.OffloadWay(inner, to)
	family, dst := uint32(unix.AF_INET), w.Outer[16:20]
	if n.over6() {
		family, dst = unix.AF_INET6, w.Outer[24:40]
	}
	if want := append(native(family), router.AsSlice()...); !ok || !bytes.Equal(w.Hop[:len(want)], want) || !bytes.Equal(dst, n.remote.AsSlice()) {
		t.Errorf("%v, %+v", ok, w)
	}
	tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun0"}, Mode: netlink.TUNTAP_MODE_TUN}
	ns.Do(t, func() {
		if err := netlink.LinkAdd(tun); err != nil {
			t.Fatal(err)
		}
	})
	if n.over6() {
		ns.Sysctl(t, "net/ipv6/conf/tun0/disable_ipv6", "0")
	}
	ns.SetUp(t, "tun0")
	var told atomic.Bool
	p.WhenChanged(func() { told.Store(true) })
	if err := ns.Links().RouteReplace(&netlink.Route{Dst: route.Dst, LinkIndex: ns.Link(t, "tun0").Attrs().Index}); err != nil {
		t.Fatal(err)
	}
	nstest.Until(t, "the port to tell", told.Load)
	if _, ok := p.OffloadWay(inner, to); ok {
		t.Error("an interface without Ethernet headers is a way")
	}
}

// native is a word as the machine has it.
func native(v uint32) []byte {
	b := make([]byte, 4)
	binary.NativeEndian.PutUint32(b, v)
	return b
}

// TestOffloadProgram: the program is at the link as long as any process has the port.
func TestOffloadProgram(t *testing.T) {
	for i, kind := range tunnelKinds {
		n := wires[i%len(wires)]
		ns, p, _ := onWire(t, kind, n)
		if n := attached(t, ns); n != 1 {
			t.Fatalf("%d programs", n)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if n := attached(t, ns); n != 0 {
			t.Errorf("%d programs of a closed port", n)
		}
		c := n.config(t, kind)
		c.Given = true
		given := open(t, ns, c)
		fds := porttest.Copies(t, given.Descriptors())
		c.Unwrap = nil
		var taken *Port
		ns.Do(t, func() {
			var err error
			if taken, err = Adopt(c, fds); err != nil {
				t.Fatal(err)
			}
		})
		if err := given.Close(); err != nil {
			t.Fatal(err)
		}
		if n := attached(t, ns); n != 1 || taken.Info().OffloadLink == 0 {
			t.Errorf("%v: %d programs, and the link is %d", kind, n, taken.Info().OffloadLink)
		}
		if _, ok := taken.OffloadWay(pt.UDP4(pt.Options{}), &packet.Tunnel{Dst: n.nodes[1]}); !ok {
			t.Error("the port that was given knows no way")
		}
		if err := taken.Close(); err != nil {
			t.Fatal(err)
		}
		if n := attached(t, ns); n != 0 {
			t.Errorf("%v: %d programs when nobody has the port", kind, n)
		}
	}
}

// TestOffloadNowhere: where no program can be, the port is as without one, and says why.
func TestOffloadNowhere(t *testing.T) {
	for family, nodes := range underlays {
		ns := underlay(t, nodes)
		c := wire4.config(t, tunnel.KindGeneve)
		c.Local, c.Peers = nodes[0], peersAt(nodes[1])
		p := open(t, ns, c)
		if i := p.Info(); i.OffloadLink != 0 || !bytes.Contains([]byte(i.Why), []byte("carries no connections by itself")) {
			t.Errorf("%s: %+v", family, i)
		}
		if _, ok := p.OffloadWay(pt.UDP4(pt.Options{}), &packet.Tunnel{Dst: nodes[1]}); ok {
			t.Errorf("%s: there is a way", family)
		}
	}
}
