package host

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// guarded are frames to the gateway, and whether the guard counts them.
type guarded struct {
	name  string
	frame func(o packettest.Options) []byte
	to    string
	port  uint16
	want  uint64
}

// udp6Behind is a UDP datagram behind an 8-byte destination options header.
func udp6Behind(o packettest.Options) []byte {
	b := packettest.UDP6(o)
	const at = packet.EthernetLen + packet.IPv6Len
	options := []byte{packet.ProtoUDP, 0, 1, 4, 0, 0, 0, 0} // PadN of 6
	b = bytes.Join([][]byte{b[:at], options, b[at:]}, nil)
	b[packet.EthernetLen+6] = 60 // destination options
	b[packet.EthernetLen+5] += 8 // payload length, below 256
	return b
}

// as sets a frame's IP protocol.
func as(proto uint8, build func(packettest.Options) []byte) func(packettest.Options) []byte {
	return func(o packettest.Options) []byte {
		b := build(o)
		if o.Dst.Is4() {
			h := packet.IPv4(b[packet.EthernetLen:])
			h.SetProto(proto)
			h.UpdateChecksum()
		} else {
			b[packet.EthernetLen+6] = proto
		}
		return b
	}
}

// TestGuard: packets from the gateway to the tunnel are dropped, at the Node's own and at
// other addresses, whole and in fragments, also if another program translates them. Other
// packets pass.
func TestGuard(t *testing.T) {
	const local4, far4, local6, far6 = "192.168.77.102", "192.168.77.103", "fd00:77::102", "fd00:77::103"
	for _, c := range []struct {
		outer Outer
		all   []guarded
	}{
		{Outer{Proto: 17, Port: 6081}, []guarded{
			{"to another Node", packettest.UDP4, far4, 6081, 1},
			{"to this Node", packettest.UDP4, local4, 6081, 1},
			{"to this Node's gateway", packettest.UDP4, "10.10.0.1", 6081, 1},
			{"to another Node, IPv6", packettest.UDP6, far6, 6081, 1},
			{"to this Node, IPv6", packettest.UDP6, local6, 6081, 1},
			{"behind an extension header", udp6Behind, far6, 6081, 1},
			{"translated to another Node", packettest.UDP4, far4, 5353, 1},
			{"another port", packettest.UDP4, far4, 6080, 0},
			{"another protocol", packettest.TCP4, far4, 6081, 0},
			{"GRE, of another tunnel", as(47, packettest.UDP4), far4, 6081, 0},
		}},
		{Outer{Proto: 17, Port: 4789}, []guarded{
			{"to another Node", packettest.UDP4, far4, 4789, 1},
			{"Geneve, of another tunnel", packettest.UDP4, far4, 6081, 0},
		}},
		{Outer{Proto: 47}, []guarded{
			{"to another Node", as(47, packettest.UDP4), far4, 0, 1},
			{"to this Node, IPv6", as(47, packettest.UDP6), local6, 0, 1},
			{"UDP", packettest.UDP4, far4, 6081, 0},
		}},
	} {
		t.Run(fmt.Sprint(c.outer), func(t *testing.T) {
			g := guardedNode(t, c.outer)
			for _, s := range c.all {
				g.send(t, s)
			}
			if c.outer.Port == 6081 {
				g.sendPieces(t, far4)
			}
			g.wantNoChange(t)
		})
	}
}

// guardNode is a Node with the guard, a link to the other Nodes, and the gateway's far
// side.
type guardNode struct {
	node    *nstest.Namespace
	gateway *nstest.Wire
	mac     net.HardwareAddr
	host    *Host
}

// guardedNode makes a guardNode. With VXLAN it does not masquerade.
func guardedNode(t *testing.T, outer Outer) *guardNode {
	t.Helper()
	n, far, under := nstest.New(t), nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, n, gateway, far, "far")
	nstest.AddVeth(t, n, "eth0", under, "under")
	n.AddAddress(t, "eth0", "192.168.77.102/24")
	n.Sysctl(t, "net/ipv6/conf/eth0/disable_ipv6", "0")
	if out, err := n.Command("ip", "address", "add", "fd00:77::102/64", "dev", "eth0", "nodad").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	g := &guardNode{node: n, gateway: nstest.OpenWire(t, far, "far")}
	n.Do(t, func() {
		c := config()
		c.Tunnel, c.Masquerade = outer, outer.Port != 4789
		h, err := Up(c)
		if err != nil {
			t.Fatal(err)
		}
		g.host = h
		link, err := net.InterfaceByName(gateway)
		if err != nil {
			t.Fatal(err)
		}
		g.mac = link.HardwareAddr
		const rules = `table ip proxy { chain pre { type nat hook prerouting priority dstnat; udp dport 5353 dnat to 192.168.77.103:6081; }; }`
		if out, err := exec.Command("nft", rules).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	t.Cleanup(func() { n.Do(t, func() { g.host.Down() }) })
	return g
}

// counted is the guard's count.
func (g *guardNode) counted(t *testing.T) (n uint64) {
	t.Helper()
	g.node.Do(t, func() {
		var err error
		if n, err = GuardDrops(); err != nil {
			t.Fatal(err)
		}
	})
	return n
}

// options are the virtio options of a pod's frame.
func (g *guardNode) options(to string, port uint16) packettest.Options {
	o := packettest.Options{
		EthSrc: [6]byte{2, 0, 0, 0, 0, 1}, EthDst: [6]byte(g.mac), Src: packettest.Addr("10.10.0.26"), Dst: packettest.Addr(to), SrcPort: 40000, DstPort: port, Payload: make([]byte, 64),
	}
	if o.Dst.Is6() {
		o.Src = packettest.Addr("fd00:10:10::26")
	}
	return o
}

// put writes a frame to the gateway.
func (g *guardNode) put(t *testing.T, frame []byte) {
	t.Helper()
	if err := g.gateway.Send(frame); err != nil {
		t.Fatal(err)
	}
}

// send sends a frame, then one that the guard counts. When that is counted, the kernel has
// handled the first one.
func (g *guardNode) send(t *testing.T, s guarded) {
	t.Helper()
	before := g.counted(t)
	g.put(t, s.frame(g.options(s.to, s.port)))
	g.mark(t)
	if got := g.counted(t) - before - 1; got != s.want {
		t.Errorf("%s: %d dropped, want %d", s.name, got, s.want)
	}
}

// mark sends a packet that the guard counts, and waits until it is counted.
func (g *guardNode) mark(t *testing.T) {
	t.Helper()
	before := g.counted(t)
	tunnel := g.host.config.Tunnel
	frame := packettest.UDP4
	if tunnel.Port == 0 {
		frame = as(tunnel.Proto, frame)
	}
	g.put(t, frame(g.options("192.168.77.104", tunnel.Port)))
	nstest.Until(t, "the guard's count", func() bool { return g.counted(t) > before })
}

// sendPieces sends a datagram in fragments. The first one holds only the UDP header.
func (g *guardNode) sendPieces(t *testing.T, to string) {
	t.Helper()
	before := g.counted(t)
	for _, b := range packettest.Split(packettest.UDP4(g.options(to, 6081)), 7, 8) {
		g.put(t, b)
	}
	g.mark(t)
	if got := g.counted(t) - before - 1; got != 1 {
		t.Errorf("in fragments: %d dropped, want 1", got)
	}
}

// wantNoChange has another program change its own table. The guard's count does not look
// like a change of our tables, and stays.
func (g *guardNode) wantNoChange(t *testing.T) {
	t.Helper()
	before := g.counted(t)
	g.node.Do(t, func() {
		if out, err := exec.Command("nft", "add table ip strangers").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if did, err := g.host.Reconcile(); err != nil || strings.Contains(strings.Join(did, ", "), "nftables") {
			t.Errorf("mended %q: %v", did, err)
		}
	})
	if now := g.counted(t); now != before || now == 0 {
		t.Errorf("counted %d, then %d", before, now)
	}
}

// TestNoGuardWithoutTunnel: without a tunnel there is no drop and no counter.
func TestNoGuardWithoutTunnel(t *testing.T) {
	node(t).Do(t, func() {
		c := config()
		c.Tunnel = Outer{}
		h, err := Up(c)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Down()
		if rules := state(t); strings.Contains(rules, guardCounter) {
			t.Errorf("a guard in\n%s", rules)
		}
		if n, err := GuardDrops(); err == nil {
			t.Errorf("%d dropped by no guard", n)
		}
	})
}
