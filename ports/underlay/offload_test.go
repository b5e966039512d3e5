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
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/tunnel"
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Nodes on a wire, and one behind a router there.
var (
	wireNodes = [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")}
	remote    = netip.MustParseAddr("198.51.100.7")
)

// onWire is a port on a link that a program may be attached to, and the wire's other end.
func onWire(t *testing.T, kind tunnel.Kind) (ns *nstest.Namespace, p *Port, wire *nstest.Wire) {
	t.Helper()
	ns, far := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, ns, "eth0", far, "far")
	ns.AddAddress(t, "eth0", "192.0.2.1/24")
	ns.SetUp(t, "eth0")
	far.SetUp(t, "far")
	ns.AddNeighbour(t, "eth0", "192.0.2.2", nstest.MAC("far"))
	return ns, open(t, ns, wireConfig(t, kind)), nstest.OpenWire(t, far, "far")
}

func wireConfig(t *testing.T, kind tunnel.Kind) Config {
	t.Helper()
	next, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Apache-2.0", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { next.Close() })
	pods := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	return Config{
		Kind: kind, Local: wireNodes[0], MTU: 1450, Unwrap: next, Pods: pods("10.10.0.0/24"),
		Peers: []Peer{{Address: wireNodes[1], Pods: pods("10.10.1.0/24")}, {Address: remote, Pods: pods("10.10.2.0/24")}},
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
// that the port itself sends, but for the lengths, the sums and IPv4's identification.
func TestOffloadWay(t *testing.T) {
	for _, kind := range tunnelKinds {
		ns, p, wire := onWire(t, kind)
		inner := pt.TCP4(pt.Options{Src: pt.Addr("10.10.0.5"), Dst: pt.Addr("10.10.1.6"), Payload: []byte("hello")})
		w, ok := p.OffloadWay(inner, &packet.Tunnel{Dst: wireNodes[1], ID: 7})
		if !ok || int(w.Link) != ns.Link(t, "eth0").Attrs().Index || p.Info().OffloadLink != w.Link || w.GRE != (kind == tunnel.KindGRE) {
			t.Fatalf("%v: %v, %+v", kind, ok, w)
		}
		if want := 1500 - kind.Overhead(false) + packet.EthernetLen; w.MaxFrame != min(want, 1468) {
			t.Errorf("%v: frames of %d bytes", kind, w.MaxFrame)
		}
		if transmit(p, wireNodes[1], 7, inner) != 1 {
			t.Fatal("not sent")
		}
		sent := outerOn(t, wire)
		n := kind.Overhead(false)
		head, want := bytes.Clone(sent[:n+packet.EthernetLen]), w.Outer[:n+packet.EthernetLen]
		clear(head[:12])
		clear(head[16:20]) // total length, identification
		copy(head[20:22], want[20:22])
		copy(head[24:26], want[24:26])
		if kind.Port() != 0 {
			clear(head[38:42])
		}
		if head[20]&0x40 == 0 || !bytes.Equal(head, want) {
			t.Errorf("%v: sent\n%x, the kernel would write\n%x", kind, head, want)
		}
		ip := packet.IPv4(bytes.Clone(w.Outer[14:34]))
		ip[10], ip[11] = 0, 0
		if sum := packet.Sum(ip, 0); w.Outer[24] != byte(sum>>8) || w.Outer[25] != byte(sum) {
			t.Errorf("the sum is %x, want %x", w.Outer[24:26], sum)
		}
	}
}

// outerOn is the next packet between the Nodes.
func outerOn(t *testing.T, wire *nstest.Wire) []byte {
	t.Helper()
	for {
		b, err := wire.Receive(5 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 34 && b[12] == 8 && b[13] == 0 && netip.AddrFrom4([4]byte(b[26:30])) == wireNodes[0] {
			return b
		}
	}
}

// TestOffloadFrom: what the port would not receive, the kernel does not take.
func TestOffloadFrom(t *testing.T) {
	_, p, _ := onWire(t, tunnel.KindGeneve)
	p.config.AnyNetwork = false
	from := func(src string) []byte { return pt.UDP4(pt.Options{Src: pt.Addr(src), Dst: pt.Addr("10.10.0.5")}) }
	for name, test := range map[string]struct {
		src   string
		outer packet.Tunnel
		want  bool
	}{
		"its own pod":     {"10.10.1.6", packet.Tunnel{Src: wireNodes[1], Dst: wireNodes[0]}, true},
		"nobody's":        {"203.0.113.9", packet.Tunnel{Src: wireNodes[1], Dst: wireNodes[0]}, true},
		"our pod":         {"10.10.0.6", packet.Tunnel{Src: wireNodes[1], Dst: wireNodes[0]}, false},
		"another's pod":   {"10.10.2.6", packet.Tunnel{Src: wireNodes[1], Dst: wireNodes[0]}, false},
		"no Node":         {"10.10.1.6", packet.Tunnel{Src: wireNodes[1].Next(), Dst: wireNodes[0]}, false},
		"another network": {"10.10.1.6", packet.Tunnel{Src: wireNodes[1], Dst: wireNodes[0], ID: 7}, false},
		"no way back":     {"10.10.2.6", packet.Tunnel{Src: remote, Dst: wireNodes[0]}, false},
	} {
		hop, ok := p.OffloadFrom(from(test.src), &test.outer)
		if ok != test.want || ok && !bytes.Equal(hop[:], []byte{192, 0, 2, 1, 0x17, 0xc1, 0, 0, 0, 0, 0x65, 0x58, 0, 0, 0, 0, 0, 0, 0, 0}) {
			t.Errorf("%s: %v, %x", name, ok, hop)
		}
	}
}

// TestOffloadChanges: whatever a way depends on is told when it changes, and only then.
func TestOffloadChanges(t *testing.T) {
	ns, p, _ := onWire(t, tunnel.KindVXLAN)
	var told atomic.Int32
	p.WhenChanged(func() { told.Add(1) })
	inner, to := pt.UDP4(pt.Options{}), &packet.Tunnel{Dst: wireNodes[1]}
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
	step("a silent Node", 1, false, func() { p.SetSilent(wireNodes[1:]) })
	step("the same silent Node", 0, false, func() { p.SetSilent(wireNodes[1:]) })
	step("it answers", 1, true, func() { p.SetSilent(nil) })
	step("an Egress", 1, true, func() { ns.Do(t, func() { _ = p.SetEgresses(nil, []netip.Addr{remote}) }) })
	step("the same Egress", 0, true, func() { ns.Do(t, func() { _ = p.SetEgresses(nil, []netip.Addr{remote}) }) })
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
	if w, _ := p.OffloadWay(inner, to); w.MaxFrame != 1400-tunnel.KindVXLAN.Overhead(false)+packet.EthernetLen {
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

// TestOffloadByRouter: the next hop of a Node that a router leads to is the router, and a
// route into a tunnel of the kernel's own is no way.
func TestOffloadByRouter(t *testing.T) {
	ns, p, _ := onWire(t, tunnel.KindGeneve)
	inner, to := pt.UDP4(pt.Options{}), &packet.Tunnel{Dst: remote}
	if _, ok := p.OffloadWay(inner, to); ok {
		t.Error("there is a way without a route")
	}
	route := &netlink.Route{Dst: netlink.NewIPNet(remote.AsSlice()), Gw: wireNodes[1].AsSlice(), LinkIndex: ns.Link(t, "eth0").Attrs().Index}
	if err := ns.Links().RouteAdd(route); err != nil {
		t.Fatal(err)
	}
	w, ok := p.OffloadWay(inner, to)
	if want := append(native(unix.AF_INET), 192, 0, 2, 2); !ok || !bytes.Equal(w.Hop[:8], want) || !bytes.Equal(w.Outer[30:34], remote.AsSlice()) {
		t.Errorf("%v, %+v", ok, w)
	}
	tun := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun0"}, Mode: netlink.TUNTAP_MODE_TUN}
	ns.Do(t, func() {
		if err := netlink.LinkAdd(tun); err != nil {
			t.Fatal(err)
		}
	})
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
	for _, kind := range tunnelKinds {
		ns, p, _ := onWire(t, kind)
		if n := attached(t, ns); n != 1 {
			t.Fatalf("%d programs", n)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if n := attached(t, ns); n != 0 {
			t.Errorf("%d programs of a closed port", n)
		}
		c := wireConfig(t, kind)
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
		if _, ok := taken.OffloadWay(pt.UDP4(pt.Options{}), &packet.Tunnel{Dst: wireNodes[1]}); !ok {
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
		c := wireConfig(t, tunnel.KindGeneve)
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
