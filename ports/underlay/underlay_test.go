package underlay

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/porttest"
	"github.com/antrail/antrail/tunnel"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"
)

var (
	local = netip.MustParseAddr("127.0.0.1")
	peer  = netip.MustParseAddr("127.0.0.2")
)

var _ ports.Port = (*Port)(nil)

// peersAt are Nodes without pods.
func peersAt(all ...netip.Addr) (nodes []Peer) {
	for _, a := range all {
		nodes = append(nodes, Peer{Address: a})
	}
	return nodes
}

// open opens a port in a namespace, for the life of the test. It takes all virtual
// networks.
func open(t *testing.T, ns *nstest.Namespace, c Config) *Port {
	t.Helper()
	c.AnyNetwork = true
	var p *Port
	var err error
	ns.Do(t, func() { p, err = Open(c) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// node is a UDP socket in a namespace: another Node, as the port sees it.
func node(t *testing.T, ns *nstest.Namespace, addr netip.Addr) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	var err error
	ns.Do(t, func() {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, tunnel.GenevePort)))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadBuffer(4 << 20)
	return c
}

// wrap is a Geneve packet around an inner frame.
func wrap(vni uint32, inner []byte) []byte {
	return wrapIn(tunnel.KindGeneve, vni, inner)
}

func wrapIn(kind tunnel.Kind, vni uint32, inner []byte) []byte {
	b := make([]byte, tunnel.HeaderLen)
	kind.Init(b, vni)
	return append(b, inner...)
}

func sendTo(t *testing.T, c *net.UDPConn, dst netip.Addr, b []byte) {
	t.Helper()
	if _, err := c.WriteToUDPAddrPort(b, netip.AddrPortFrom(dst, tunnel.GenevePort)); err != nil {
		t.Fatal(err)
	}
}

// toPeer is a port whose frames all go to one Node, as the suite, which knows
// no tunnels, has it.
type toPeer struct {
	*Port
	dst netip.Addr
}

func (p toPeer) Transmit(batch []*packet.Frame) int {
	for _, f := range batch {
		f.Tunnel = packet.Tunnel{Dst: p.dst, ID: 7}
	}
	return p.Port.Transmit(batch)
}

// underlays are the addresses of two Nodes, by the family of the underlay.
var underlays = map[string][2]netip.Addr{
	"IPv4": {local, peer},
	"IPv6": {netip.MustParseAddr("fd77::101"), netip.MustParseAddr("fd77::102")},
}

// underlay is a namespace with two Nodes' addresses, usable at once.
func underlay(t *testing.T, nodes [2]netip.Addr) *nstest.Namespace {
	t.Helper()
	ns := nstest.New(t)
	if nodes[0].Is4() {
		return ns // 127.0.0.0/8 is there
	}
	ns.Sysctl(t, "net/ipv6/conf/lo/disable_ipv6", "0")
	for _, a := range nodes {
		addIPv6(t, ns, a)
	}
	return ns
}

// addIPv6 adds an address of IPv6 that is usable at once.
func addIPv6(t *testing.T, ns *nstest.Namespace, a netip.Addr) {
	t.Helper()
	if out, err := ns.Command("ip", "address", "add", a.String()+"/128", "dev", "lo", "nodad").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ns.Do(t, func() { // the kernel installs the local route a moment after the address: what is sent before goes nowhere
		nstest.Until(t, "a route to "+a.String(), func() bool { return routed(a) })
	})
}

// routed says whether a connection to the address is refused, and not lost.
func routed(a netip.Addr) bool {
	c, err := net.DialTimeout("tcp", netip.AddrPortFrom(a, 9).String(), 200*time.Millisecond)
	if err == nil {
		c.Close()
	}
	return err == nil || errors.Is(err, unix.ECONNREFUSED)
}

// rigs opens a port for the suite; whole, with the other Node's port as its
// other side, else with a socket.
func rigs(kind tunnel.Kind, nodes [2]netip.Addr) func(t *testing.T) *porttest.Rig {
	return func(t *testing.T) *porttest.Rig {
		const poolFrames, portFrames = 512, 256
		ns := underlay(t, nodes)
		p := open(t, ns, Config{Name: "tun0", Kind: kind, Local: nodes[0], MTU: 1500, Frames: portFrames, Peers: peersAt(nodes[1:]...)})
		c := far(t, ns, kind, nodes[1])
		pool := packet.NewPool(poolFrames, 2048)
		buf := make([]byte, 4096)
		return &porttest.Rig{
			Port: toPeer{p, nodes[1]}, Get: pool.Get, Frames: poolFrames + portFrames + maxJoined, Backlog: 20000, Does: true,
			Free: func() int { return pool.Free() + p.pool.Free() + p.spares + p.large.Free() },
			Inject: func(b []byte) error {
				return c.send(nodes[0], wrapIn(kind, 7, b))
			},
			Observe: func(wait time.Duration) ([]byte, error) {
				c.SetReadDeadline(time.Now().Add(wait))
				n, _, err := c.ReadFrom(buf)
				if e, timeout := err.(net.Error); timeout && e.Timeout() || errors.Is(err, net.ErrClosed) {
					return nil, nil
				}
				return bytes.Clone(buf[tunnel.HeaderLen:max(n, tunnel.HeaderLen)]), err
			},
			Whole: func() ports.Port {
				c.Close()
				return toPeer{open(t, ns, Config{Name: "tun1", Kind: kind, Local: nodes[1], MTU: 1500, Peers: peersAt(nodes[:1]...)}), nodes[0]}
			},
		}
	}
}

func TestConformance(t *testing.T) {
	for family, nodes := range underlays {
		for _, kind := range kinds {
			t.Run(family+"/"+kind.String(), func(t *testing.T) { porttest.Run(t, rigs(kind, nodes)) })
		}
	}
}

// receive waits for n frames.
func receive(t *testing.T, p *Port, n int) []*packet.Frame {
	t.Helper()
	var got []*packet.Frame
	batch := make([]*packet.Frame, n)
	for end := time.Now().Add(time.Minute); len(got) < n && time.Now().Before(end); {
		k := p.Receive(batch[:n-len(got)])
		got = append(got, batch[:k]...)
		if k == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if len(got) != n {
		t.Fatalf("received %d frames of %d; stats %+v", len(got), n, p.Stats())
	}
	return got
}

func transmit(p *Port, dst netip.Addr, vni uint64, inner []byte) int {
	f := packet.FrameOf(inner)
	f.Tunnel = packet.Tunnel{Dst: dst, ID: vni}
	return p.Transmit([]*packet.Frame{f})
}

func TestBetweenTwoNodes(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "eth0", b, "eth1")
	aAddr, bAddr := netip.MustParseAddr("192.168.77.101"), netip.MustParseAddr("192.168.77.102")
	a.AddAddress(t, "eth0", "192.168.77.101/24")
	b.AddAddress(t, "eth1", "192.168.77.102/24")
	pa := open(t, a, Config{Name: "a", Local: aAddr, Peers: peersAt(bAddr)})
	pb := open(t, b, Config{Name: "b", Local: bAddr, Peers: peersAt(aAddr)})
	for _, way := range []struct {
		from, to *Port
		src, dst netip.Addr
	}{{pa, pb, aAddr, bAddr}, {pb, pa, bAddr, aAddr}} {
		inner := pt.TCP4(pt.Options{Payload: make([]byte, 1410)})
		if n := transmit(way.from, way.dst, 0x123456, inner); n != 1 {
			t.Fatalf("not sent: %+v", way.from.Stats())
		}
		f := receive(t, way.to, 1)[0]
		if !bytes.Equal(f.Bytes(), inner) {
			t.Errorf("inner frame changed:\n got %x\nwant %x", f.Bytes(), inner)
		}
		if want := (packet.Tunnel{Src: way.src, Dst: way.dst, ID: 0x123456}); f.Tunnel != want {
			t.Errorf("Tunnel = %+v, want %+v", f.Tunnel, want)
		}
	}
}

// TestWire captures what the port sends and lets gopacket read all of it.
func TestWire(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "eth0", b, "eth1")
	a.AddAddress(t, "eth0", "192.168.77.101/24")
	dst := netip.MustParseAddr("192.168.77.102")
	a.AddNeighbour(t, "eth0", dst.String(), nstest.MAC("eth1"))
	wire := nstest.OpenWire(t, b, "eth1")
	p := open(t, a, Config{Name: "a", Local: netip.MustParseAddr("192.168.77.101"), Peers: peersAt(dst)})
	sourcePorts := map[layers.UDPPort]bool{}
	for i := range 32 {
		inner := pt.UDP4(pt.Options{SrcPort: 5000 + uint16(i), Payload: []byte("inner")})
		transmit(p, dst, 77, inner)
		g := captured(t, wire, layers.LayerTypeGeneve)
		ip := g.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		udp := g.Layer(layers.LayerTypeUDP).(*layers.UDP)
		gnv := g.Layer(layers.LayerTypeGeneve).(*layers.Geneve)
		if ip.Flags != layers.IPv4DontFragment || ip.SrcIP.String() != "192.168.77.101" || ip.DstIP.String() != dst.String() {
			t.Errorf("outer IPv4 header %+v", ip)
		}
		if udp.DstPort != tunnel.GenevePort || udp.SrcPort == 0 {
			t.Errorf("outer UDP header %+v", udp)
		}
		if gnv.VNI != 77 || !bytes.Equal(gnv.Payload, inner) {
			t.Errorf("VNI %d, inner %x, want 77 and %x", gnv.VNI, gnv.Payload, inner)
		}
		sourcePorts[udp.SrcPort] = true
	}
	if len(sourcePorts) < 24 {
		t.Errorf("32 flows left from %d source ports", len(sourcePorts))
	}
}

// captured is the next packet on the wire that has a layer.
func captured(t *testing.T, w *nstest.Wire, layer gopacket.LayerType) gopacket.Packet {
	t.Helper()
	for range 100 {
		b, err := w.Receive(time.Minute)
		if err != nil || b == nil {
			break
		}
		g := gopacket.NewPacket(b, layers.LayerTypeEthernet, gopacket.Default)
		if g.Layer(layer) != nil {
			return g
		}
	}
	t.Fatalf("no %v on the wire", layer)
	return nil
}

func TestDropsOnReceive(t *testing.T) {
	inner := pt.TCP4(pt.Options{})
	control := wrap(7, inner)
	control[1] = 0x80
	stranger := netip.MustParseAddr("127.0.0.3")
	for _, tt := range []struct {
		name     string
		from     netip.Addr
		datagram []byte
		reason   string
	}{
		{"stranger", stranger, wrap(7, inner), "outer source is not a known Node"},
		{"control message", peer, control, tunnel.Control.String()},
		{"empty datagram", peer, nil, tunnel.Short.String()},
		{"runt inside", peer, wrap(7, inner[:13]), tunnel.Inner.String()},
		{"longer than a buffer", peer, wrap(7, make([]byte, 4000)), ports.RxTooLong.String()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ns := nstest.New(t)
			p := open(t, ns, Config{Local: local, Peers: peersAt(peer), Frames: 8})
			good := node(t, ns, peer)
			sendTo(t, good, local, wrap(1, inner))
			if tt.from == stranger {
				sendTo(t, node(t, ns, stranger), local, tt.datagram)
			} else {
				sendTo(t, good, local, tt.datagram)
			}
			sendTo(t, good, local, wrap(2, inner))
			for i, f := range receive(t, p, 2) {
				if f.Tunnel.ID != uint64(i+1) || !bytes.Equal(f.Bytes(), inner) {
					t.Errorf("frame %d: VNI %d, %x", i, f.Tunnel.ID, f.Bytes())
				}
			}
			if n := p.Receive(make([]*packet.Frame, 1)); n != 0 { // the datagram was in another socket
				t.Errorf("%d frames more", n)
			}
			s := p.Stats()
			if s.Reasons[tt.reason] != 1 || s.RxDropped+s.RxErrors != 1 || s.RxPackets != 2 {
				t.Errorf("stats %+v, want one %q and two packets", s, tt.reason)
			}
		})
	}
}

func TestDropsOnTransmit(t *testing.T) {
	ns := nstest.New(t)
	nowhere := netip.MustParseAddr("203.0.113.1")
	p := open(t, ns, Config{Local: local, Peers: peersAt(peer, nowhere)})
	inner := pt.TCP4(pt.Options{})
	for _, tt := range []struct {
		name   string
		dst    netip.Addr
		reason string
	}{
		{"no destination", netip.Addr{}, "frame for the tunnel names no Node"},
		{"stranger", netip.MustParseAddr("127.0.0.3"), "tunnel destination is not a known Node"},
		{"no route", nowhere, "no route to the Node"},
		{"other family", netip.MustParseAddr("fd00::1"), "tunnel destination is not a known Node"},
	} {
		before := p.Stats()
		if n := transmit(p, tt.dst, 7, inner); n != 0 {
			t.Errorf("%s: accepted", tt.name)
		}
		s := p.Stats()
		if s.Reasons[tt.reason] != before.Reasons[tt.reason]+1 || s.TxDropped != before.TxDropped+1 {
			t.Errorf("%s: stats %+v, want one more %q", tt.name, s, tt.reason)
		}
	}
	if x := p.DropSample("no route to the Node"); x.Source != nowhere || x.Length != len(inner) || !bytes.HasPrefix(inner, x.Head) {
		t.Errorf("the last one without a route: %d bytes for %v: %x", x.Length, x.Source, x.Head)
	}
	// A frame that cannot be sent does not stop the frames after it.
	batch := make([]*packet.Frame, 3)
	for i, dst := range []netip.Addr{peer, nowhere, peer} {
		batch[i] = packet.NewFrame(make([]byte, 512), nil)
		batch[i].SetBytes(inner)
		batch[i].Tunnel.Dst = dst
	}
	if n := p.Transmit(batch); n != 2 {
		t.Errorf("%d frames accepted of two good ones and one without a route", n)
	}
}

// TestLongerThanRoute sends what the port's MTU allows and the route's does not,
// with the DF bit: nothing is fragmented.
func TestLongerThanRoute(t *testing.T) {
	a, b := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "eth0", b, "eth1")
	a.AddAddress(t, "eth0", "192.168.77.101/24")
	dst := netip.MustParseAddr("192.168.77.102")
	a.AddNeighbour(t, "eth0", dst.String(), nstest.MAC("eth1"))
	p := open(t, a, Config{Local: netip.MustParseAddr("192.168.77.101"), MTU: 1500, Peers: peersAt(dst)})
	// 1500 = outer IPv4 20, UDP 8, Geneve 8, inner Ethernet 14, inner IPv4 20 and UDP 8, payload.
	const most = 1500 - 20 - 8 - 8 - 14 - 20 - 8
	if transmit(p, dst, 7, df(pt.UDP4(pt.Options{Payload: make([]byte, most)}))) != 1 {
		t.Errorf("the longest frame that fits was not sent: %+v", p.Stats())
	}
	if transmit(p, dst, 7, df(pt.UDP4(pt.Options{Payload: make([]byte, most+1)}))) != 0 {
		t.Error("one byte more was sent")
	}
	if s := p.Stats(); s.Reasons[ports.TxTooLong.String()] != 1 || s.TxErrors != 1 {
		t.Errorf("stats %+v, want one %q", s, ports.TxTooLong)
	}
	if x := p.DropSample(ports.TxTooLong.String()); x.Source != dst || x.Length != 14+20+8+most+1 {
		t.Errorf("the last one: %d bytes for %v", x.Length, x.Source)
	}
	// The same, less 12 bytes of header that TCP has more than UDP, of segments.
	for size, sent := range map[int]int{most - 12: 1, most - 11: 0} {
		f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
		f.CopyFrom(pt.Undone(df(pt.TCP4(pt.Options{Payload: make([]byte, 3*size)})), size))
		f.Tunnel.Dst = dst
		if p.Transmit([]*packet.Frame{f}) != sent {
			t.Errorf("segments of %d bytes: %+v", size, p.Stats())
		}
	}
	if s := p.Stats(); s.Reasons[ports.TxTooLong.String()] != 1+3 || s.TxPackets != 1+3 {
		t.Errorf("stats %+v, want 3 segments more sent, and 3 more %q", s, ports.TxTooLong)
	}
}

func TestSetPeers(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Local: local})
	c := node(t, ns, peer)
	inner := pt.TCP4(pt.Options{})
	if transmit(p, peer, 7, inner) != 0 {
		t.Error("sent to a Node not yet known")
	}
	p.SetPeers(peersAt(netip.MustParseAddr("::ffff:127.0.0.2")))
	if transmit(p, peer, 7, inner) != 1 {
		t.Error("not sent to a known Node")
	}
	sendTo(t, c, local, wrap(7, inner))
	packet.Release(receive(t, p, 1))
	p.SetPeers(nil)
	if transmit(p, peer, 7, inner) != 0 {
		t.Error("sent to a Node no longer known")
	}
}

func TestIPv6(t *testing.T) {
	a, b := underlays["IPv6"][0], underlays["IPv6"][1]
	ns := underlay(t, underlays["IPv6"])
	pa := open(t, ns, Config{Local: a, Peers: peersAt(b)})
	pb := open(t, ns, Config{Local: b, Peers: peersAt(a)})
	inner := pt.TCP6(pt.Options{Payload: []byte("six in six")})
	if transmit(pa, b, 9, inner) != 1 {
		t.Fatalf("not sent: %+v", pa.Stats())
	}
	f := receive(t, pb, 1)[0]
	if want := (packet.Tunnel{Src: a, Dst: b, ID: 9}); f.Tunnel != want || !bytes.Equal(f.Bytes(), inner) {
		t.Errorf("Tunnel %+v, inner %x", f.Tunnel, f.Bytes())
	}
}

func TestOpenRefuses(t *testing.T) {
	ns := nstest.New(t)
	ns.Do(t, func() {
		for _, a := range []string{"0.0.0.0", "::ffff:127.0.0.1", "203.0.113.1"} {
			if p, err := Open(Config{Local: netip.MustParseAddr(a)}); err == nil {
				p.Close()
				t.Errorf("opened on %s", a)
			}
		}
	})
	open(t, ns, Config{Local: local})
	ns.Do(t, func() {
		if p, err := Open(Config{Local: local}); err == nil {
			p.Close()
			t.Error("opened twice on one address")
		} else if !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("opened twice: %v, want address in use", err)
		}
	})
}
