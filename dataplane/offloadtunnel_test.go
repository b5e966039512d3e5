package dataplane_test

import (
	"encoding/binary"
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
	closed  bool
	changed func()
}

var thisNode = netip.MustParseAddr("192.168.77.100")

func (p *onUnderlay) OffloadWay(inner []byte, t *packet.Tunnel) (w ports.OffloadWay, ok bool) {
	l := packet.ParseLayers(inner)
	from := netip.AddrPortFrom(thisNode, uint16(tunnel.FlowHash(inner, &l)))
	w = ports.OffloadWay{Link: p.link, MaxFrame: ports.MaxFrame(p.Info().MTU)}
	w.GRE = p.kind == tunnel.KindGRE
	w.Outer = underlay.OuterOf(p.kind, from, t.Dst, uint32(t.ID), inner)
	return w, !p.closed && t.Dst.Is4()
}

func (p *onUnderlay) OffloadFrom(_ []byte, t *packet.Tunnel) (ports.OffloadHop, bool) {
	return underlay.OuterShown(p.kind, t), !p.closed
}

func (p *onUnderlay) WhenChanged(changed func()) { p.changed = changed }

// wrap is a frame in outer headers, as another Node's programs send it.
func (k *trial) wrap(o *offer) []byte {
	const noSource = 40000
	outer := underlay.OuterOf(k.kind, netip.AddrPortFrom(o.tunnel.Src, noSource), o.tunnel.Dst, uint32(o.tunnel.ID), o.frame)
	n := k.kind.Overhead(false) // the inner Ethernet header is as long as the outer one
	b := append(outer[:n:n], o.frame...)
	ip := packet.IPv4(b[packet.EthernetLen:])
	ip.SetTotalLen(uint16(len(ip)))
	ip.UpdateChecksum()
	if k.kind.Port() != 0 {
		packet.UDP(ip[packet.IPv4Len:]).SetLength(uint16(len(ip) - packet.IPv4Len))
	}
	return b
}

// unwrapped checks every bit of the outer headers, and returns the inner frame.
func unwrapped(t testing.TB, kind tunnel.Kind, b []byte) ([]byte, packet.Tunnel) {
	t.Helper()
	ip := packet.IPv4(b[packet.EthernetLen:])
	udp, head := packet.UDP(ip[packet.IPv4Len:]), ip[packet.IPv4Len:]
	if kind.Port() != 0 {
		head = head[packet.UDPLen:]
	}
	inner, vni, why := kind.Unwrap(head)
	if why != tunnel.None {
		t.Fatalf("what goes into the tunnel is refused: %v\n%x", why, b)
	}
	l := packet.ParseLayers(inner)
	if ip.Src() != thisNode || !ip.ChecksumValid() || int(ip.TotalLen()) != len(ip) || ip.FlagsOffset() != packet.IPv4DontFragment || ip.TTL() != 64 || ip.Proto() != kind.Proto() ||
		kind.Port() != 0 && (int(binary.BigEndian.Uint16(udp[4:])) != len(udp) || binary.BigEndian.Uint16(udp[6:]) != 0 ||
			udp.SrcPort() != uint16(tunnel.FlowHash(inner, &l)) || udp.DstPort() != kind.Port()) {
		t.Fatalf("outer headers are wrong: %x", b)
	}
	return inner, packet.Tunnel{Dst: ip.Dst(), ID: uint64(vni)}
}

// tunnelRig is a pod's port and a tunnel, between which UDP may pass.
func tunnelRig(t *testing.T, kind tunnel.Kind) (*rig, *trial, *onUnderlay) {
	t.Helper()
	k := newTrial(t)
	k.kind = kind
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
		table=2,priority=1,in_port=1 actions=set_field:02:00:00:00:00:77->eth_dst,set_field:192.168.77.101->tun_dst,output:2
		table=2,priority=1,in_port=2 actions=output:1`)}))))
	r.ports[1], r.ports[2] = memory.New("p1", memory.Options{}), memory.New("tun", memory.Options{Tunnel: true})
	port := linked(k, 2, r.ports[2]).(*onUnderlay)
	r.check(sw.AddPort(1, linked(k, 1, r.ports[1])))
	r.check(sw.AddPort(2, port))
	return r, k, port
}

var (
	farNode  = packet.Tunnel{Src: netip.MustParseAddr("192.168.77.101"), Dst: thisNode}
	toFar    = packettest.UDP4(packettest.Options{SrcPort: 1000, Payload: []byte("question")})
	fromFar  = packettest.UDP4(packettest.Options{Src: packettest.Addr("10.0.0.2"), Dst: packettest.Addr("10.0.0.1"), SrcPort: 80, DstPort: 1000, Payload: []byte("answer")})
	directed = map[string]offer{"there": {port: 1, frame: toFar}, "back": {port: 2, frame: fromFar, tunnel: farNode}}
)

// talkFar exchanges datagrams until both directions are the kernel's, or eight times.
func (r *rig) talkFar() (there, back bool) {
	r.Helper()
	for range 8 {
		for name, o := range directed {
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
	r, k, port := tunnelRig(t, tunnel.KindGeneve)
	if there, back := r.talkFar(); !there || !back {
		t.Fatalf("taken there %v, back %v: %+v", there, back, r.sw.OffloadStats())
	}
	port.closed = true
	port.changed()
	for name, o := range directed {
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
	for _, kind := range []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE} {
		r, k, _ := tunnelRig(t, kind)
		if _, back := r.talkFar(); !back {
			t.Fatalf("%v: nothing was taken: %+v", kind, r.sw.OffloadStats())
		}
		for name, change := range map[string]func(o *packet.Tunnel){
			"another Node":    func(o *packet.Tunnel) { o.Src = netip.MustParseAddr("192.168.77.102") },
			"another address": func(o *packet.Tunnel) { o.Dst = netip.MustParseAddr("192.168.77.99") },
			"another network": func(o *packet.Tunnel) { o.ID = 5 },
		} {
			o := directed["back"]
			change(&o.tunnel)
			if _, taken := k.receive(t, o); taken {
				t.Errorf("%v: taken from %s", kind, name)
			}
		}
		for _, k.kind = range []tunnel.Kind{tunnel.KindGeneve, tunnel.KindVXLAN, tunnel.KindGRE} {
			if _, taken := k.receive(t, directed["back"]); taken != (k.kind == kind) {
				t.Errorf("%v: taken %v by %v", kind, taken, k.kind)
			}
		}
	}
}
