package afxdp

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
	pt "github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/tunnel"
)

// TestFilterTakesNothingJoined: in generic mode a filter takes a tunnel's packet with
// one inner packet, of either family inside and outside, and leaves to the kernel what
// several were joined to, and what has no inner IP packet.
func TestFilterTakesNothingJoined(t *testing.T) {
	const inner = packet.UDPLen + tunnel.HeaderLen
	p := newPair(t, Options{Mode: Generic, Filter: &Filter{Proto: packet.ProtoUDP, Port: tunnel.GenevePort, Inner: inner}})
	v4, v6 := netip.MustParseAddr("192.168.77.101"), netip.MustParseAddr("fd77::101")
	if err := p.port.SetLocal([]netip.Addr{v4, v6}); err != nil {
		t.Fatal(err)
	}
	one := func(frame []byte) []byte {
		b := append(make([]byte, tunnel.HeaderLen), frame...)
		tunnel.KindGeneve.Init(b, 7)
		return b
	}
	to4 := func(payload []byte) []byte {
		return pt.UDP4(pt.Options{Dst: v4, DstPort: tunnel.GenevePort, Payload: payload})
	}
	to6 := func(payload []byte) []byte {
		return pt.UDP6(pt.Options{Dst: v6, DstPort: tunnel.GenevePort, Payload: payload})
	}
	tcp4, tcp6 := one(pt.TCP4(pt.Options{})), one(pt.TCP6(pt.Options{Payload: []byte("odd")}))
	for name, c := range map[string]struct {
		frame []byte
		taken bool
	}{
		"IPv4 in IPv4": {to4(tcp4), true}, "IPv6 in IPv4": {to4(tcp6), true}, "IPv4 in IPv6": {to6(tcp4), true}, "IPv6 in IPv6": {to6(tcp6), true},
		"two joined": {to4(append(bytes.Clone(tcp4), tcp4...)), false}, "two of IPv6 joined": {to6(append(bytes.Clone(tcp6), tcp6...)), false},
		"ARP": {to4(one(pt.ARPRequest(pt.Options{}))), false}, "header only": {to4(one(nil)), false},
		"another port": {pt.UDP4(pt.Options{Dst: v4, DstPort: 53, Payload: tcp4}), false},
	} {
		before := p.port.Stats().RxPackets
		if err := p.wire.Send(c.frame); err != nil {
			t.Fatal(err)
		}
		if err := p.wire.Send(to4(tcp4)); err != nil { // it comes after what is taken
			t.Fatal(err)
		}
		want := before + 1
		if c.taken {
			want++
		}
		batch := make([]*packet.Frame, 4)
		for end := time.Now().Add(time.Minute); p.port.Stats().RxPackets < want && time.Now().Before(end); {
			packet.Release(batch[:p.port.Receive(batch)])
		}
		if got := p.port.Stats().RxPackets; got != want {
			t.Errorf("%s: %d packets were taken, want %d", name, got-before, want-before)
		}
	}
}
