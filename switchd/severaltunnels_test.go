//go:build linux

package switchd

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/switchd/local"
)

// farEnd is a switch with a pod at port 1 and tunnels at an address of the loopback.
type farEnd struct {
	t    *testing.T
	sw   *local.Switch
	set  *PortSet
	pod  *memory.Port
	addr netip.Addr
}

func newFarEnd(t *testing.T, address, entries string) *farEnd {
	t.Helper()
	sw, err := local.Open(local.Config{Conntrack: conntrack.Config{Timeouts: proto.DefaultTimeouts()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sw.Close() })
	open := &Opener{Log: slog.New(slog.DiscardHandler)}
	e := &farEnd{t, sw, NewPortSet(sw, open), memory.New("pod", memory.Options{}), netip.MustParseAddr(address)}
	if err := sw.AddPort(1, e.pod); err != nil {
		t.Fatal(err)
	}
	names := flow.NewNames()
	b := &flow.Bundle{Names: names}
	for line := range strings.Lines(entries) {
		one, err := parse.Entry(strings.TrimSpace(line), names)
		if err != nil {
			t.Fatal(err)
		}
		b.Add = append(b.Add, one)
	}
	if err := sw.Apply(b); err != nil {
		t.Fatal(err)
	}
	return e
}

// open opens a tunnel with one far end or, without it, to all.
func (e *farEnd) open(no uint32, name, kind, only string, network uint32) error {
	t := &door.TunnelSpec{Kind: kind, Local: e.addr, MTU: 1400, Driver: door.DriverKernel, Network: network, AnyPeer: only == "", AnyNetwork: only == "", Options: true}
	if only != "" {
		t.Only = netip.MustParseAddr(only)
	}
	return e.set.OpenPort(&door.PortSpec{No: no, Name: name, Driver: door.DriverTunnel, Tunnel: t})
}

// mustOpen is open without an error.
func (e *farEnd) mustOpen(no uint32, name, kind, only string, network uint32) {
	e.t.Helper()
	if err := e.open(no, name, kind, only, network); err != nil {
		e.t.Fatal(err)
	}
}

// got is the next frame at the pod; nil if there is none.
func (e *farEnd) got(wait time.Duration) *packet.Frame {
	for end := time.Now().Add(wait); ; time.Sleep(time.Millisecond) {
		e.sw.Poll()
		if f := e.pod.CollectAll(); len(f) > 0 {
			return f[0]
		}
		if time.Now().After(end) {
			return nil
		}
	}
}

// TestSeveralTunnels: a switch has a tunnel of each kind. One has a fixed far end and network,
// whatever entries set, and accepts frames from no other. In the other, entries choose both. A
// second one of a kind at an address is refused.
func TestSeveralTunnels(t *testing.T) {
	const entries = `in_port=1,dl_dst=00:00:00:00:00:0a,actions=set_field:127.0.7.9->tun_dst,set_field:9->tun_id,output:10
		in_port=1,dl_dst=00:00:00:00:00:0b,actions=set_field:127.0.7.2->tun_dst,set_field:7->tun_id,output:11
		in_port=1,dl_dst=00:00:00:00:00:0c,actions=output:12
		in_port=10,tun_id=5,tun_src=127.0.7.1,actions=output:1
		in_port=11,tun_id=7,tun_src=127.0.7.1,actions=output:1
		in_port=12,actions=output:1`
	near, far := newFarEnd(t, "127.0.7.1", entries), newFarEnd(t, "127.0.7.2", entries)
	near.mustOpen(10, "gen0", "geneve", "127.0.7.2", 5)
	near.mustOpen(11, "vx0", "vxlan", "", 0)
	far.mustOpen(10, "gen0", "geneve", "127.0.7.1", 5)
	far.mustOpen(11, "vx0", "vxlan", "", 0)
	send := func(last byte) *packet.Frame {
		t.Helper()
		frame := make([]byte, 60)
		frame[5], frame[11], frame[12], frame[13] = last, 1, 0x88, 0xb5
		if err := near.pod.Send(frame); err != nil {
			t.Fatal(err)
		}
		near.sw.Poll()
		return far.got(2 * time.Second)
	}
	for _, last := range []byte{0xa, 0xb} {
		if f := send(last); f == nil || f.Bytes()[5] != last {
			t.Errorf("the frame to %#x came as %v", last, f)
		}
	}
	if n := len(near.set.Tunnels()); n != 2 {
		t.Errorf("%d tunnels", n)
	}
	if err := near.open(12, "gen1", "geneve", "", 0); err == nil || !strings.Contains(err.Error(), "gen0") {
		t.Errorf("a second geneve tunnel at the address: %v", err)
	}
	if err := near.set.RemovePort(10); err != nil {
		t.Fatal(err)
	}
	near.mustOpen(12, "gen1", "geneve", "127.0.7.2", 6)
	send(0xc)
	for _, p := range far.sw.Ports() {
		if p.No == 10 && (p.RxPackets != 1 || p.RxErrors+p.RxDropped != 1) {
			t.Errorf("a frame of another network: %+v", p.Stats)
		}
	}
}

// numbered gives Geneve options their numbers, and adds entries that use them.
func (e *farEnd) numbered(all []flow.TunnelOption, entries string) {
	e.t.Helper()
	b := &flow.Bundle{Names: flow.NewNames()}
	if err := b.Names.SetTunnelOptions(all); err != nil {
		e.t.Fatal(err)
	}
	for line := range strings.Lines(entries) {
		one, err := parse.Entry(strings.TrimSpace(line), b.Names)
		if err != nil {
			e.t.Fatal(err)
		}
		b.Add = append(b.Add, one)
	}
	if err := e.sw.Apply(b); err != nil {
		e.t.Fatal(err)
	}
}

// TestOptionsBetweenSwitches: an option that one switch's entry sets arrives at the other, which
// gives it another number. A packet with an unknown critical option is dropped.
func TestOptionsBetweenSwitches(t *testing.T) {
	near, far := newFarEnd(t, "127.0.7.3", "priority=0,actions=drop"), newFarEnd(t, "127.0.7.4", "priority=0,actions=drop")
	near.mustOpen(10, "gen0", "geneve", "", 0)
	far.mustOpen(10, "gen0", "geneve", "", 0)
	near.numbered([]flow.TunnelOption{{Index: 0, Class: 0x102, Type: 0x80, Size: 4}, {Index: 1, Class: 0xffff, Type: 1, Size: 8}},
		`priority=1,in_port=1,actions=set_field:127.0.7.4->tun_dst,set_field:3->tun_id,set_field:0x20005->tun_metadata0,set_field:0x1122334455667788->tun_metadata1,output:10
		priority=2,in_port=1,dl_dst=00:00:00:00:00:0b,actions=set_field:127.0.7.4->tun_dst,set_field:0x20006->tun_metadata0,output:10`)
	far.numbered([]flow.TunnelOption{{Index: 5, Class: 0x102, Type: 0x80, Size: 4}, {Index: 0, Class: 0xffff, Type: 1, Size: 8}},
		`priority=1,in_port=10,tun_id=3,tun_metadata5=0x20005,tun_metadata0=0x1122334455667788,actions=move:NXM_NX_TUN_METADATA5[16..23]->NXM_OF_ETH_DST[0..7],output:1
		priority=1,in_port=10,tun_metadata5=0x20007,actions=set_field:00:00:00:00:00:07->eth_dst,output:1`)
	frame := make([]byte, 60)
	frame[5], frame[11], frame[12], frame[13] = 0xa, 1, 0x88, 0xb5
	if err := near.pod.Send(frame); err != nil {
		t.Fatal(err)
	}
	near.sw.Poll()
	if f := far.got(2 * time.Second); f == nil || f.Bytes()[5] != 2 {
		t.Errorf("the frame came as %v", f)
	}
	conn, err := net.Dial("udp", "127.0.7.4:6081")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const mapped, unknown = "\x01\x02\x80\x01\x00\x02\x00\x07", "\x01\x02\x81\x00"
	for _, options := range []string{mapped + unknown, mapped} {
		header := []byte{byte(len(options) / 4), 0x40, 0x65, 0x58, 0, 0, 1, 0}
		if _, err := conn.Write(slices.Concat(header, []byte(options), frame)); err != nil {
			t.Fatal(err)
		}
	}
	if f := far.got(2 * time.Second); f == nil || f.Bytes()[5] != 7 {
		t.Errorf("the injected frame came as %v", f)
	}
	if n := far.sw.Drops()[telemetry.DropTunnelOption]; n != 1 {
		t.Errorf("%d packets dropped for their options, want 1", n)
	}
}
