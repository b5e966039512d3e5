package underlay

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// The Nodes of these tests: this one, peer, and other.
var (
	other = netip.MustParseAddr("127.0.0.8")
	here  = []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24"), netip.MustParsePrefix("fd00:10:10::/64")}
	known = []Peer{
		{peer, []netip.Prefix{netip.MustParsePrefix("10.10.1.0/24"), netip.MustParsePrefix("fd00:10:10:1::/64")}},
		{other, []netip.Prefix{netip.MustParsePrefix("10.11.0.0/16"), netip.MustParsePrefix("fd00:10:11::/56")}},
		{netip.MustParseAddr("127.0.0.9"), nil}, // its ranges are not known
	}
)

// from is an inner frame with a source, or a claim.
func from(src string) []byte {
	o := pt.Options{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr("10.10.0.25")}
	if o.Src.Is4() {
		return pt.TCP4(o)
	}
	o.Dst = netip.MustParseAddr("fd00:10:10::25")
	return pt.TCP6(o)
}

// neighbour is a message of neighbour discovery, changed to a type, about a target.
func neighbour(kind byte, src, target string) []byte {
	b := pt.NeighborSolicit6(pt.Options{Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr(target)})
	b[packet.ParseLayers(b).L4] = kind
	return b
}

// tagged is a frame with so many VLAN tags.
func tagged(b []byte, tags int) []byte {
	for range tags {
		b = bytes.Join([][]byte{b[:12], {0x81, 0, 0, 7}, b[12:]}, nil)
	}
	return b
}

// TestSenders: a Node may send in the name of its own pods and of no others, by any header. A
// source that is in no Node's range passes.
func TestSenders(t *testing.T) {
	arp := func(spa string) []byte {
		return pt.ARPRequest(pt.Options{Src: netip.MustParseAddr(spa), Dst: netip.MustParseAddr("10.10.0.25")})
	}
	snap := func(b []byte) []byte {
		return bytes.Join([][]byte{b[:12], {0, byte(len(b) - 14 + 8), 0xaa, 0xaa, 3, 0, 0, 0}, b[12:]}, nil)
	}
	unsound := from("10.10.0.24")
	unsound[packet.EthernetLen] = 0x43
	for _, c := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"its pod", from("10.10.1.6"), true},
		{"its pod, IPv6", from("fd00:10:10:1::6"), true},
		{"its gateway", from("10.10.1.1"), true},
		{"this Node's pod", from("10.10.0.24"), false},
		{"this Node's pod, IPv6", from("fd00:10:10::24"), false},
		{"another Node's pod", from("10.11.200.1"), false},
		{"another Node's pod, IPv6", from("fd00:10:11:7::1"), false},
		{"a client of a load balancer", from("192.168.77.1"), true},
		{"a client, IPv6", from("fd00:77::1"), true},
		{"a pod range's neighbour", from("10.10.2.0"), true},
		{"link-local", from("fe80::1"), true},
		{"ARP of its pod", arp("10.10.1.6"), true},
		{"ARP of this Node's pod", arp("10.10.0.24"), false},
		{"behind a tag", tagged(from("10.10.0.24"), 1), false},
		{"behind two tags", tagged(from("fd00:10:10::24"), 2), true}, // no address, for entries neither
		{"its pod behind a tag", tagged(from("10.10.1.6"), 1), true},
		{"in SNAP", snap(from("10.10.0.24")), false},
		{"in an IPv4 header of a wrong version", unsound, false},
		{"advertises its pod", neighbour(packet.ICMPv6NeighborAdvert, "fd00:10:10:1::6", "fd00:10:10:1::6"), true},
		{"advertises this Node's pod", neighbour(packet.ICMPv6NeighborAdvert, "fd00:10:10:1::6", "fd00:10:10::24"), false},
		{"advertises another Node's pod, link-local", neighbour(packet.ICMPv6NeighborAdvert, "fe80::1", "fd00:10:11::1"), false},
		{"asks for this Node's pod", neighbour(packet.ICMPv6NeighborSolicit, "fd00:10:10:1::6", "fd00:10:10::24"), true},
		{"asks whether this Node's pod is free", neighbour(packet.ICMPv6NeighborSolicit, "::", "fd00:10:10::24"), false},
		{"cut off", from("10.10.0.24")[:packet.EthernetLen+packet.IPv4Len-1], true}, // no address, for entries neither
		{"no IP", append(make([]byte, 12), 0x88, 0xcc, 1, 2, 3), true},
	} {
		n, ok := newPeers(known, &Config{Pods: here}).sender(peer)
		if got := n.maySend(c.frame); !ok || got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestAnyPeer: with Config.AnyPeer every address is a Node's. A Node with ranges keeps to them.
func TestAnyPeer(t *testing.T) {
	stranger := netip.MustParseAddr("192.0.2.9")
	for _, any := range []bool{false, true} {
		n, ok := newPeers(nil, &Config{AnyPeer: any}).sender(stranger)
		if ok != any || any && !n.maySend(from("10.10.1.6")) {
			t.Errorf("AnyPeer %v: known %v", any, ok)
		}
	}
	n, ok := newPeers(known, &Config{AnyPeer: true}).sender(peer)
	if !ok || n.maySend(from("10.11.0.6")) || !n.maySend(from("10.10.1.6")) {
		t.Error("a Node with ranges speaks for another")
	}
}

// TestUnknownRange: a Node whose ranges nobody knows may use no range that is known.
func TestUnknownRange(t *testing.T) {
	n, ok := newPeers(known, &Config{Pods: here}).sender(netip.MustParseAddr("127.0.0.9"))
	for src, want := range map[string]bool{"10.10.1.6": false, "10.10.0.24": false, "fd00:10:11::1": false, "10.12.0.1": true} {
		if got := n.maySend(from(src)); !ok || got != want {
			t.Errorf("from %s: %v, want %v", src, got, want)
		}
	}
}

// strict is a port without sockets that knows the Nodes of these tests, and takes
// network 0 only.
func strict(t testing.TB, kind tunnel.Kind) *Port {
	t.Helper()
	p := unopened(t, 64, 8)
	p.config.Kind, p.config.Pods, p.config.AnyNetwork = kind, here, false
	p.SetPeers(known)
	return p
}

// TestForeignSourcesAreRefused: by the sockets and by another way, each datagram of
// another Node's source or of another network is counted, named and kept; segments that
// came together are checked one by one.
func TestForeignSourcesAreRefused(t *testing.T) {
	own, foreign, outside := from("10.10.1.6"), from("10.10.0.24"), from("192.168.77.1")
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			p := strict(t, kind)
			wrap := func(vni uint32, b []byte) []byte { return wrapIn(kind, vni, b) }
			all := [][]byte{wrap(0, own), wrap(0, foreign), wrap(5, own), wrap(0, outside), wrap(0, foreign)}
			if p.isRaw() { // whose messages are single and have an outer IPv4 header
				for _, b := range all {
					p.arrives(peer, append(pt.UDP4(pt.Options{})[packet.EthernetLen:packet.EthernetLen+packet.IPv4Len], b...), 0)
				}
			} else {
				p.arrives(peer, bytes.Join(all, nil), len(all[0]))
			}
			p.supply(8)
			if n := p.deliver(make([]*packet.Frame, 8)); n != 2 {
				t.Errorf("%d frames, want 2", n)
			}
			wantRefused(t, p, peer, all[1], 2, 1)
			for _, b := range all {
				p.Admit(b, peer, local)
			}
			wantRefused(t, p, peer, all[1], 4, 2)
		})
	}
}

// wantRefused wants so many datagrams refused for each of the two reasons, and the
// last foreign one kept.
func wantRefused(t *testing.T, p *Port, node netip.Addr, last []byte, foreign, network uint64) {
	t.Helper()
	s := p.Stats()
	if s.Reasons[ports.RxForeign.String()] != foreign || s.Reasons[tunnel.Network.String()] != network || s.RxDropped != foreign || s.RxErrors != network {
		t.Errorf("%+v, want %d foreign, and %d of another network", s, foreign, network)
	}
	if x := p.DropSample(ports.RxForeign.String()); x.Source != node || x.Length != len(last) || !bytes.HasPrefix(last, x.Head) || len(x.Head) == 0 {
		t.Errorf("kept %+v, want the beginning of %x", x, last)
	}
	if x := p.DropSample(tunnel.Network.String()); x.Source != node || x.Length == 0 {
		t.Errorf("kept %+v of another network", x)
	}
}

// TestJoinedSegmentsAreChecked: of TCP segments that came in one message, a foreign one
// is joined to none.
func TestJoinedSegmentsAreChecked(t *testing.T) {
	p := strict(t, tunnel.KindGeneve)
	whole := pt.Undone(pt.TCP4(pt.Options{Src: netip.MustParseAddr("10.10.1.6"), Payload: make([]byte, 400), TCPFlags: packet.TCPAck}), 100)
	cut := segments(t, whole)
	packet.IPv4(cut[2][packet.EthernetLen:]).SetSrc(netip.MustParseAddr("10.10.0.24"))
	p.arrives(peer, message(0, cut...), len(wrap(0, cut[0])))
	p.supply(8)
	p.deliver(make([]*packet.Frame, 8))
	if s := p.Stats(); s.RxPackets != uint64(len(cut)-1) || s.Reasons[ports.RxForeign.String()] != 1 {
		t.Errorf("%+v, want %d segments, and 1 foreign", s, len(cut)-1)
	}
}

// TestPeersMove: a range goes to another Node at run time, and the next message is
// checked by that.
func TestPeersMove(t *testing.T) {
	p := strict(t, tunnel.KindGeneve)
	moved := []Peer{{peer, known[1].Pods}, {other, known[0].Pods}}
	for i, want := range []int{1, 0, 1} {
		p.SetPeers([][]Peer{known, moved, known}[i])
		p.in.clear()
		p.arrives(peer, message(0, from("10.10.1.6")), 0)
		p.supply(8)
		if n := p.deliver(make([]*packet.Frame, 8)); n != want {
			t.Errorf("with set %d: %d frames, want %d", i, n, want)
		}
	}
}

// manyPeers are 1000 Nodes with a range in each family, peer among them.
func manyPeers() *peers {
	all := []Peer{known[0]}
	for i := range 999 {
		all = append(all, Peer{
			netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}),
			[]netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(20 + i>>8), byte(i), 0}), 24)},
		})
	}
	return newPeers(all, &Config{Pods: here})
}

// checked are frames whose check takes each of its ways.
var checked = []struct {
	name  string
	frame []byte
}{
	{"own", from("10.10.1.6")},
	{"own IPv6", from("fd00:10:10:1::6")},
	{"outside", from("192.168.77.1")},
	{"outside IPv6", from("fd00:77::1")},
	{"foreign", from("10.20.3.4")},
}

// TestCheckAllocatesNothing: for no frame, with many Nodes.
func TestCheckAllocatesNothing(t *testing.T) {
	s := manyPeers()
	for _, c := range checked {
		if n := testing.AllocsPerRun(100, func() {
			if n, ok := s.sender(peer); !ok || n.maySend(c.frame) == (c.name == "foreign") {
				t.Error(c.name)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}

// BenchmarkCheck is the check of a frame alone, with 1000 Nodes.
func BenchmarkCheck(b *testing.B) {
	n, _ := manyPeers().sender(peer)
	for _, c := range checked {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				n.maySend(c.frame)
			}
		})
	}
}

// BenchmarkUnwrapped is a message of 32 datagrams of one Node of 1000, from the inbox on.
func BenchmarkUnwrapped(b *testing.B) {
	p := unopened(b, 64, 8)
	p.peers.Store(manyPeers())
	var all [][]byte
	for i := range 32 {
		all = append(all, pt.UDP4(pt.Options{Src: netip.MustParseAddr("10.10.1.6"), SrcPort: uint16(i), Payload: make([]byte, 64)}))
	}
	text, size, batch := message(0, all...), len(wrap(0, all[0])), make([]*packet.Frame, 32)
	for b.Loop() {
		p.in.clear()
		p.arrives(peer, text, size)
		p.supply(32)
		if n := p.deliver(batch); n != 32 {
			b.Fatal(fmt.Sprint(n, " frames"))
		}
		packet.Release(batch)
	}
}
