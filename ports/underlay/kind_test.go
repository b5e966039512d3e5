package underlay

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/safchain/ethtool"
)

var kinds = []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE}

// farEnd is another Node as the port sees it: a socket that sends and receives
// what tunnels of a kind consist of, without outer headers.
type farEnd struct {
	net.PacketConn
	kind tunnel.Kind
}

func far(t *testing.T, ns *nstest.Namespace, kind tunnel.Kind, at netip.Addr) farEnd {
	t.Helper()
	if kind.Port() != 0 {
		var c *net.UDPConn
		var err error
		ns.Do(t, func() {
			c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, kind.Port())))
		})
		return farEnd{opened(t, c, err), kind}
	}
	var c *net.IPConn
	var err error
	ns.Do(t, func() { c, err = net.ListenIP(fmt.Sprintf("ip:%d", kind.Proto()), &net.IPAddr{IP: at.AsSlice()}) })
	return farEnd{opened(t, c, err), kind}
}

func opened[C interface {
	net.PacketConn
	SetReadBuffer(int) error
}](t *testing.T, c C, err error) C {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadBuffer(4 << 20)
	return c
}

func (e farEnd) send(to netip.Addr, b []byte) (err error) {
	if e.kind.Port() != 0 {
		_, err = e.WriteTo(b, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, e.kind.Port())))
	} else {
		_, err = e.WriteTo(b, &net.IPAddr{IP: to.AsSlice()})
	}
	return err
}

// twoNodes are two Nodes with a wire between them.
func twoNodes(t *testing.T) (a, b *nstest.Namespace, aAddr, bAddr netip.Addr) {
	a, b = nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, a, "eth0", b, "eth1")
	a.AddAddress(t, "eth0", "192.168.77.101/24")
	b.AddAddress(t, "eth1", "192.168.77.102/24")
	return a, b, netip.MustParseAddr("192.168.77.101"), netip.MustParseAddr("192.168.77.102")
}

// TestWireOfKinds captures what ports of VXLAN and GRE send and lets gopacket read
// all of it.
func TestWireOfKinds(t *testing.T) {
	inner := pt.UDP4(pt.Options{Payload: []byte("inner")})
	for kind, layer := range map[tunnel.Kind]gopacket.LayerType{tunnel.KindVXLAN: layers.LayerTypeVXLAN, tunnel.KindGRE: layers.LayerTypeGRE} {
		a, b, src, dst := twoNodes(t)
		wire := nstest.OpenWire(t, b, "eth1")
		p := open(t, a, Config{Kind: kind, Local: src, Peers: peersAt(dst)})
		if transmit(p, dst, 77, inner) != 1 {
			t.Fatalf("%v: not sent: %+v", kind, p.Stats())
		}
		g := captured(t, wire, layer)
		ip := g.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if ip.Flags != layers.IPv4DontFragment || ip.SrcIP.String() != src.String() || ip.DstIP.String() != dst.String() || uint8(ip.Protocol) != kind.Proto() {
			t.Errorf("%v: outer IPv4 header %+v", kind, ip)
		}
		var vni uint32
		switch h := g.Layer(layer).(type) {
		case *layers.VXLAN:
			vni = h.VNI
			if udp := g.Layer(layers.LayerTypeUDP).(*layers.UDP); udp.DstPort != tunnel.VXLANPort || udp.SrcPort == 0 {
				t.Errorf("outer UDP header %+v", udp)
			}
		case *layers.GRE:
			vni = h.Key
		}
		if payload := g.Layer(layer).LayerPayload(); vni != 77 || !bytes.Equal(payload, inner) {
			t.Errorf("%v: VNI %d, inner %x, want 77 and %x", kind, vni, payload, inner)
		}
	}
}

// TestOtherKindIsNotReceived: what travels in another kind of tunnel never
// reaches a port.
func TestOtherKindIsNotReceived(t *testing.T) {
	inner := pt.UDP4(pt.Options{Payload: []byte("inner")})
	for _, kind := range kinds {
		ns := nstest.New(t)
		p := open(t, ns, Config{Kind: kind, Local: local, Peers: peersAt(peer)})
		for _, other := range kinds {
			if err := far(t, ns, other, peer).send(local, wrapIn(other, uint32(other), inner)); err != nil {
				t.Fatal(err)
			}
		}
		if f := receive(t, p, 1)[0]; f.Tunnel.ID != uint64(kind) {
			t.Errorf("%v: a frame of %v came", kind, tunnel.Kind(f.Tunnel.ID))
		}
		if n := p.Receive(make([]*packet.Frame, 4)); n != 0 {
			t.Errorf("%v: %d frames of other kinds came", kind, n)
		}
		if s := p.Stats(); s.RxPackets != 1 || s.RxErrors+s.RxDropped > 0 {
			t.Errorf("%v: %+v", kind, s)
		}
	}
}

// TestAgainstTheKernelsVXLAN has the kernel's own VXLAN device at the other end:
// echo requests go through it and are answered through it, and a large segment
// and its checksum arrive whole.
func TestAgainstTheKernelsVXLAN(t *testing.T) {
	a, b, aAddr, bAddr := twoNodes(t)
	addVXLAN(t, b, bAddr, aAddr)
	p := open(t, a, Config{Kind: tunnel.KindVXLAN, Local: aAddr, Peers: peersAt(bAddr)})
	o := pt.Options{
		EthSrc: [6]byte{2, 0, 0, 0, 0, 0x11}, EthDst: [6]byte{2, 0, 0, 0, 0, 0x99}, Src: pt.Addr("10.1.0.1"), Dst: pt.Addr("10.1.0.2"), Payload: bytes.Repeat([]byte("echo"), 300),
	}
	request := pt.ICMPEcho4(o)
	if transmit(p, bAddr, 7, request) != 1 {
		t.Fatalf("not sent: %+v", p.Stats())
	}
	f := receive(t, p, 1)[0]
	l := packet.ParseLayers(f.Bytes())
	ip := packet.IPv4(f.Bytes()[l.L3:])
	if f.Tunnel.ID != 7 || f.Tunnel.Src != bAddr || ip.Src() != netip.MustParseAddr("10.1.0.2") || !l.L4Valid(f.Bytes()) || !bytes.HasSuffix(f.Bytes(), o.Payload) {
		t.Errorf("the answer is %x of %+v", f.Bytes(), f.Tunnel)
	}
}

// addVXLAN makes the kernel's own VXLAN device, with the address 10.1.0.2.
func addVXLAN(t *testing.T, ns *nstest.Namespace, at, to netip.Addr) {
	t.Helper()
	const mac = "02:00:00:00:00:99"
	for _, args := range [][]string{
		{"link", "add", "vx0", "address", mac, "type", "vxlan", "id", "7", "local", at.String(), "remote", to.String(), "dstport", "4789"},
		{"address", "add", "10.1.0.2/24", "dev", "vx0"},
		{"link", "set", "vx0", "up"},
		{"neighbour", "add", "10.1.0.1", "lladdr", "02:00:00:00:00:11", "dev", "vx0"},
	} {
		if out, err := ns.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
	}
}

// TestGREThatTheKernelJoined: a card's kernel joins TCP segments inside GRE before
// a raw socket sees them. They arrive as one frame to be cut, with all bytes.
func TestGREThatTheKernelJoined(t *testing.T) {
	a, b, aAddr, bAddr := twoNodes(t)
	b.Do(t, func() {
		e, err := ethtool.NewEthtool()
		if err == nil {
			defer e.Close()
			err = e.Change("eth1", map[string]bool{"rx-gro": true})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	pa := open(t, a, Config{Kind: tunnel.KindGRE, Local: aAddr, Peers: peersAt(bAddr)})
	pb := open(t, b, Config{Kind: tunnel.KindGRE, Local: bAddr, Peers: peersAt(aAddr)})
	all := make([]byte, 42_000)
	for i := range all {
		all[i] = byte(i * i >> 3)
	}
	large := pt.Undone(pt.TCP4(pt.Options{Payload: all, TCPFlags: packet.TCPAck}), 1400)
	f := packet.NewFrame(make([]byte, packet.LargeBuffer), nil)
	f.CopyFrom(large)
	f.Tunnel.Dst = bAddr
	if pa.Transmit([]*packet.Frame{f}) != 1 {
		t.Fatalf("not sent: %+v", pa.Stats())
	}
	var got []byte
	longest := 0
	for end := time.Now().Add(time.Minute); len(got) < len(all) && time.Now().Before(end); {
		batch := make([]*packet.Frame, 8)
		for _, f := range batch[:pb.Receive(batch)] {
			longest = max(longest, f.Len())
			l := packet.ParseLayers(f.Bytes())
			if f.Len() > ports.MaxFrame(1450) && (f.Offload.SegmentSize == 0 || !f.Offload.ChecksumPartial) {
				t.Errorf("%d bytes are not to be cut: %+v", f.Len(), f.Offload)
			}
			if !packet.CompleteChecksum(f, &l) && f.Offload.SegmentSize == 0 || f.Offload.None() && !l.L4Valid(f.Bytes()) {
				t.Errorf("checksum of %d bytes is wrong, %+v", f.Len(), f.Offload)
			}
			got = append(got, f.Bytes()[54:]...)
			packet.Release([]*packet.Frame{f})
		}
	}
	if !bytes.Equal(got, all) {
		t.Errorf("%d bytes arrived of %d: %+v", len(got), len(all), pb.Stats())
	}
	t.Logf("the longest frame was %d bytes", longest)
}

// A raw message that is longer than the MTU and nothing that the kernel has made
// is lost, and counted.
func TestGRETooLong(t *testing.T) {
	ns := nstest.New(t)
	p := open(t, ns, Config{Kind: tunnel.KindGRE, Local: local, Peers: peersAt(peer)})
	c := far(t, ns, tunnel.KindGRE, peer)
	for _, inner := range [][]byte{pt.UDP4(pt.Options{Payload: make([]byte, 3000)}), pt.TCP4(pt.Options{Payload: make([]byte, 3000)})} {
		if err := c.send(local, wrapIn(tunnel.KindGRE, 7, inner)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.send(local, wrapIn(tunnel.KindGRE, 7, pt.TCP4(pt.Options{}))); err != nil {
		t.Fatal(err)
	}
	packet.Release(receive(t, p, 1))
	if s := p.Stats(); s.Reasons[ports.RxTooLong.String()] != 2 {
		t.Errorf("%+v, want two %q", s, ports.RxTooLong)
	}
}
