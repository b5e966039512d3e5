package dataplane_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tunnel"
)

// onUnderlay is a memory port whose packets the kernel may carry in a tunnel. closed
// says that it carries none now.
type onUnderlay struct {
	onLink
	kind    tunnel.Kind
	over6   bool
	closed  bool
	changed func()
}

// fromNode is what frames of another Node come with, over IPv4 and over IPv6.
var fromNode = map[bool]packet.Tunnel{
	false: {Src: netip.MustParseAddr("192.168.77.101"), Dst: netip.MustParseAddr("192.168.77.100")},
	true:  {Src: netip.MustParseAddr("fd00:77::101"), Dst: netip.MustParseAddr("fd00:77::100")},
}

// toNode is an action by which frames go to that Node.
func toNode(over6 bool) string {
	field := "tun_dst"
	if over6 {
		field = "tun_ipv6_dst"
	}
	return fmt.Sprintf("set_field:%v->%s", fromNode[over6].Src, field)
}

func (p *onUnderlay) OffloadWay(inner []byte, t *packet.Tunnel) (w ports.OffloadWay, ok bool) {
	l := packet.ParseLayers(inner)
	from := netip.AddrPortFrom(fromNode[p.over6].Dst, uint16(tunnel.FlowHash(inner, &l)))
	w = underlay.WayTo(p.kind, from, t.Dst, uint32(t.ID), inner)
	w.Link, w.MaxFrame = p.link, ports.MaxFrame(p.Info().MTU)
	return w, !p.closed && t.Dst.Is6() == p.over6
}

func (p *onUnderlay) OffloadFrom(inner []byte, t *packet.Tunnel) (ports.OffloadWay, bool) {
	return underlay.WayFrom(p.kind, t, inner), !p.closed
}

func (p *onUnderlay) WhenChanged(changed func()) { p.changed = changed }

// outerIPLen is the length of the outer IP header.
func (k *trial) outerIPLen() int {
	if k.over6 {
		return packet.IPv6Len
	}
	return packet.IPv4Len
}

// wrap is a frame in outer headers, as another Node's programs send it.
func (k *trial) wrap(o *offer) []byte {
	const noSource = 40000
	outer := underlay.WayTo(k.kind, netip.AddrPortFrom(o.tunnel.Src, noSource), o.tunnel.Dst, uint32(o.tunnel.ID), o.frame).Outer
	b := make([]byte, packet.EthernetLen, packet.EthernetLen+len(outer)+len(o.frame))
	n := k.kind.Overhead(k.over6) - packet.EthernetLen // up to the inner Ethernet header
	b = append(append(b, outer[:n]...), o.frame...)
	ip, ipLen := b[packet.EthernetLen:], k.outerIPLen()
	if k.over6 {
		binary.BigEndian.PutUint16(b[12:], packet.EtherTypeIPv6)
		packet.IPv6(ip).SetPayloadLen(uint16(len(ip) - ipLen))
	} else {
		binary.BigEndian.PutUint16(b[12:], packet.EtherTypeIPv4)
		packet.IPv4(ip).SetTotalLen(uint16(len(ip)))
		packet.IPv4(ip).UpdateChecksum()
	}
	if k.kind.Port() != 0 {
		packet.UDP(ip[ipLen:]).SetLength(uint16(len(ip) - ipLen))
	}
	return b
}

// unwrap checks every bit of the outer headers, and returns the inner frame.
func (k *trial) unwrap(t testing.TB, b []byte) ([]byte, packet.Tunnel) {
	t.Helper()
	ip := b[packet.EthernetLen:]
	udp, head := packet.UDP(ip[k.outerIPLen():]), ip[k.outerIPLen():]
	if k.kind.Port() != 0 {
		head = head[packet.UDPLen:]
	}
	inner, vni, why := k.kind.Unwrap(head)
	if why != tunnel.None {
		t.Fatalf("what goes into the tunnel is refused: %v\n%x", why, b)
	}
	l := packet.ParseLayers(inner)
	hash := tunnel.FlowHash(inner, &l)
	dst, sound := soundIPv4(b, k.kind)
	if k.over6 {
		dst, sound = soundIPv6(b, k.kind, hash)
	}
	if !sound || k.kind.Port() != 0 && (int(binary.BigEndian.Uint16(udp[4:])) != len(udp) || binary.BigEndian.Uint16(udp[6:]) != 0 ||
		udp.SrcPort() != uint16(hash) || udp.DstPort() != k.kind.Port()) {
		t.Fatalf("outer headers are wrong: %x", b)
	}
	return inner, packet.Tunnel{Dst: dst, ID: uint64(vni)}
}

func soundIPv4(b []byte, kind tunnel.Kind) (dst netip.Addr, sound bool) {
	ip := packet.IPv4(b[packet.EthernetLen:])
	return ip.Dst(), packet.Ethernet(b).Type() == packet.EtherTypeIPv4 && ip.Src() == fromNode[false].Dst && ip.ChecksumValid() && ip[0] == 0x45 && ip[1] == 0 &&
		int(ip.TotalLen()) == len(ip) && ip.FlagsOffset() == packet.IPv4DontFragment && ip.TTL() == 64 && ip.Proto() == kind.Proto()
}

func soundIPv6(b []byte, kind tunnel.Kind, hash uint32) (dst netip.Addr, sound bool) {
	ip := packet.IPv6(b[packet.EthernetLen:])
	const label = 1<<20 - 1
	return ip.Dst(), packet.Ethernet(b).Type() == packet.EtherTypeIPv6 && ip.Src() == fromNode[true].Dst && binary.BigEndian.Uint32(ip) == 6<<28|hash&label &&
		int(ip.PayloadLen()) == len(ip)-packet.IPv6Len && ip.NextHeader() == kind.Proto() && ip.HopLimit() == 64
}

// tunnelRig is a pod's port and a tunnel, between which UDP may pass.
func tunnelRig(t *testing.T, kind tunnel.Kind, over6 bool) (*rig, *trial, *onUnderlay) {
	t.Helper()
	k := newTrial(t)
	k.kind, k.over6 = kind, over6
	r := &rig{TB: t, ports: map[uint32]*memory.Port{}, now: new(int64), kernel: k}
	*r.now = 1e12
	clock := func() int64 { return *r.now }
	r.conntrack = conntrack.NewTable(conntrack.Config{Now: clock})
	sw, err := dataplane.New(dataplane.Config{Conntrack: r.conntrack, Clock: clock, Offload: k.kernel, OffloadAfter: 1})
	r.check(err)
	r.sw = sw
	t.Cleanup(func() { closeSwitch(t, sw) })
	r.check(sw.Apply(flow.BundleOf(r.parse(parse.Sources{Flows: parse.Text("flows", `
		table=0,priority=1,udp actions=ct(table=1,zone=10)
		table=1,priority=2,ct_state=+new+trk,udp actions=ct(commit,table=2,zone=10)
		table=1,priority=1 actions=goto_table:2
		table=2,priority=1,in_port=1 actions=set_field:02:00:00:00:00:77->eth_dst,`+toNode(over6)+`,output:2
		table=2,priority=1,in_port=2 actions=output:1`)}))))
	r.ports[1], r.ports[2] = memory.New("p1", memory.Options{}), memory.New("tun", memory.Options{Tunnel: true})
	port := linked(k, 2, r.ports[2]).(*onUnderlay)
	r.check(sw.AddPort(1, linked(k, 1, r.ports[1])))
	r.check(sw.AddPort(2, port))
	return r, k, port
}

var (
	toFar   = packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: []byte("question")})
	fromFar = packettest.UDP4(packettest.Options{Src: packettest.Addr("10.0.0.2"), Dst: packettest.Addr("10.0.0.1"), SrcPort: 80, DstPort: 1000, Payload: []byte("answer")})
)

// directed is a datagram of each direction.
func (k *trial) directed() map[string]offer {
	return map[string]offer{"there": {port: 1, frame: toFar}, "back": {port: 2, frame: fromFar, tunnel: fromNode[k.over6]}}
}

// talkFar exchanges datagrams until both directions are the kernel's, or eight times.
func (r *rig) talkFar() (there, back bool) {
	r.Helper()
	for range 8 {
		for name, o := range r.kernel.directed() {
			_, taken := r.kernel.receive(r, o)
			if !taken {
				r.sendTunnelled(o)
			}
			if name == "there" {
				there = taken
			} else {
				back = taken
			}
		}
	}
	return there, back
}

// sendTunnelled has the switch get a frame with its outer header.
func (r *rig) sendTunnelled(o offer) {
	r.Helper()
	f := packet.NewFrame(make([]byte, packet.Headroom+len(o.frame)), nil)
	f.SetBytes(o.frame)
	f.Tunnel = o.tunnel
	if r.ports[o.port].Inject(f) == 0 {
		r.Fatal("the port is full")
	}
	r.sw.Poll()
	r.collect()
}

// TestTunnelWithdraws: when the tunnel's port says that something has changed, the kernel
// forwards neither direction, and gets nothing while the port says no.
func TestTunnelWithdraws(t *testing.T) {
	for _, over6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("over IPv6 %v", over6), func(t *testing.T) { testTunnelWithdraws(t, over6) })
	}
}

func testTunnelWithdraws(t *testing.T, over6 bool) {
	t.Helper()
	r, k, port := tunnelRig(t, tunnel.KindGeneve, over6)
	if there, back := r.talkFar(); !there || !back {
		t.Fatalf("taken there %v, back %v: %+v", there, back, r.sw.OffloadStats())
	}
	port.closed = true
	port.changed()
	for name, o := range k.directed() {
		if _, taken := k.receive(t, o); taken {
			t.Errorf("%s: taken after a change", name)
		}
	}
	r.sw.Poll()
	if there, back := r.talkFar(); there || back {
		t.Errorf("taken there %v, back %v, though the port says no", there, back)
	}
	st := r.sw.OffloadStats()
	if st.Events[telemetry.OffloadWithdrawn] != 2 || st.Events[telemetry.OffloadNoWay] == 0 || st.Entries != 0 {
		t.Errorf("%+v", st)
	}
}

// TestTunnelFromOthers: only what shows the outer headers of the connection's own packets
// is taken, with each kind of tunnel.
func TestTunnelFromOthers(t *testing.T) {
	kinds := []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE}
	for i := range 2 * len(kinds) {
		kind, over6 := kinds[i%len(kinds)], i >= len(kinds)
		r, k, _ := tunnelRig(t, kind, over6)
		if _, back := r.talkFar(); !back {
			t.Fatalf("%v: nothing was taken: %+v", kind, r.sw.OffloadStats())
		}
		for name, change := range map[string]func(o *packet.Tunnel){
			"another Node":                 func(o *packet.Tunnel) { o.Src = o.Src.Next() },
			"another Node of the same end": func(o *packet.Tunnel) { o.Src = sameEnd(o.Src) },
			"another address":              func(o *packet.Tunnel) { o.Dst = o.Dst.Prev() },
			"another network":              func(o *packet.Tunnel) { o.ID = 5 },
		} {
			o := k.directed()["back"]
			change(&o.tunnel)
			if _, taken := k.receive(t, o); taken {
				t.Errorf("%v, over IPv6 %v: taken from %s", kind, over6, name)
			}
		}
		for _, k.kind = range kinds {
			if _, taken := k.receive(t, k.directed()["back"]); taken != (k.kind == kind) {
				t.Errorf("%v, over IPv6 %v: taken %v by %v", kind, over6, taken, k.kind)
			}
		}
	}
}

// sameEnd is another address, with the same last four bytes if it is of IPv6.
func sameEnd(a netip.Addr) netip.Addr {
	b := a.AsSlice()
	b[3]++
	other, _ := netip.AddrFromSlice(b)
	return other
}
