package dataplane_test

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/tunnel"
)

// The options of the rigs below: tun_metadata0 is critical and has 4 bytes, tun_metadata3 has 8.
const (
	optionTen   packet.TunnelOptions = "\x01\x02\x80\x01\x00\x00\x00\x0a"
	optionTwo   packet.TunnelOptions = "\x01\x02\x80\x01\x00\x00\x00\x02"
	optionOf3   packet.TunnelOptions = "\xff\xff\x00\x02\x00\x00\x00\x00\x00\x00\x00\x05"
	optionOther packet.TunnelOptions = "\x05\x05\x80\x00" // critical, and no field stands for it
	optionShort packet.TunnelOptions = "\x01\x02\x80\x00" // of another length than the field
)

var numberedOptions = []flow.TunnelOption{{Index: 0, Class: 0x102, Type: 0x80, Size: 4}, {Index: 3, Class: 0xffff, Size: 8}}

// newOptionsRig is a rig with flow caches, whose port 9 is a tunnel.
func newOptionsRig(t *testing.T, entries string) *rig {
	t.Helper()
	r := newRemembering(t, "actions=drop", conntrack.Config{}, dataplane.Config{Cache: 256})
	r.ports[tunnelPort] = memory.New("tun", memory.Options{Tunnel: true})
	r.check(r.sw.AddPort(tunnelPort, r.ports[tunnelPort]))
	b := flow.BundleOf(r.parse(parse.Sources{Flows: parse.Text("flows", entries)}))
	r.check(b.Names.SetTunnelOptions(numberedOptions))
	r.check(r.sw.Apply(b))
	return r
}

// sendOptions gives the switch a packet from the tunnel with options.
func (r *rig) sendOptions(o packet.TunnelOptions) []sent {
	r.Helper()
	frame := packettest.UDP4(packettest.Options{SrcPort: 1000})
	f := packet.FrameOf(frame)
	f.Tunnel = packet.Tunnel{Src: packettest.Addr("192.168.77.101"), Dst: packettest.Addr("192.168.77.102"), ID: 7, Options: o}
	return r.sendWhole(tunnelPort, f)
}

// TestTunnelOptions: entries see the options of packets from a tunnel, by whole values, by masks, and
// whether they are there. The flow caches tell packets apart that differ in them alone.
func TestTunnelOptions(t *testing.T) {
	r := newOptionsRig(t, `priority=4,in_port=9,tun_metadata0=0xa actions=output:1
		priority=3,in_port=9,tun_metadata0=0x2/0xf actions=output:2
		priority=2,in_port=9,tun_metadata3 actions=output:3
		priority=1,in_port=9,tun_metadata0=0 actions=output:4
		priority=0 actions=drop`)
	for range 5 { // later packets are replayed
		for o, want := range map[packet.TunnelOptions][]uint32{optionTen: {1}, optionTwo: {2}, optionOf3: {3}, optionOf3 + optionTwo: {2}, "\x01\x02\x80\x01\x00\x00\x00\x00": {4}, "\x07\x07\x01\x00": nil, "": nil} {
			r.wantPorts(r.sendOptions(o), want...)
		}
	}
	r.wantPorts(r.sendOptions(optionTen + optionOther))
	r.wantPorts(r.sendOptions(optionShort))
	if got := r.sw.Drops()[telemetry.DropTunnelOption]; got != 2 {
		t.Errorf("%d packets dropped for their options, want 2", got)
	}
}

// TestOptionsLeave: packets leave by a tunnel with the options that entries have set, and those that they
// came with. They have the order of their fields' numbers.
func TestOptionsLeave(t *testing.T) {
	r := newOptionsRig(t, `priority=9,in_port=9 actions=IN_PORT
		priority=5,in_port=1 actions=set_field:10.0.0.2->tun_dst,set_field:5->tun_metadata3,set_field:0xa->tun_metadata0,output:9
		priority=5,in_port=2 actions=set_field:10.0.0.2->tun_dst,set_field:0x2->reg3,move:NXM_NX_REG3[0..7]->NXM_NX_TUN_METADATA0[0..7],output:9
		priority=5,in_port=3 actions=set_field:10.0.0.2->tun_dst,load:0xa->NXM_NX_TUN_METADATA0[0..15],clone(set_field:2/0xff->tun_metadata0),output:9
		priority=5,in_port=4 actions=set_field:10.0.0.2->tun_dst,output:9`)
	for range 5 {
		for port, want := range map[uint32]packet.TunnelOptions{1: optionTen + optionOf3, 2: optionTwo, 3: optionTen, 4: ""} {
			out := r.sendFrame(port, packettest.UDP4(packettest.Options{SrcPort: 1000}))
			if r.wantPorts(out, tunnelPort); out[0].tunnel.Options != want {
				t.Errorf("from port %d: options %x, want %x", port, out[0].tunnel.Options, want)
			}
		}
	}
	out := r.sendOptions(optionOf3 + "\x07\x07\x01\x00" + optionTwo) // nobody has to know the second
	if r.wantPorts(out, tunnelPort); out[0].tunnel.Options != optionTwo+optionOf3 {
		t.Errorf("options %x", out[0].tunnel.Options)
	}
}

// TestOptionsRefused: an entry, a group or a packet-out with a field that stands for no option is refused,
// and so is a table that lacks an option in use.
func TestOptionsRefused(t *testing.T) {
	r := newOptionsRig(t, "tun_metadata3=5 actions=drop")
	for _, line := range []string{
		"tun_metadata1=5 actions=drop", "tun_metadata0=0x100000000 actions=drop", "actions=set_field:1->tun_metadata7",
		"actions=clone(move:NXM_NX_TUN_METADATA0[0..39]->NXM_NX_XXREG0[0..39])",
	} {
		err := r.sw.Apply(&flow.Bundle{Add: r.program(line).Entries})
		if err == nil || !strings.Contains(err.Error(), "stands for no Geneve option") {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := r.sw.PacketOut(1, []flow.Action{flow.SetField{Field: flow.TunMetadata0 + 1, Mask: flow.Ones(64)}}, make([]byte, 60)); err == nil {
		t.Error("a packet-out is taken")
	}
	names := flow.NewNames()
	r.check(names.SetTunnelOptions(numberedOptions[:1]))
	if err := r.sw.Apply(&flow.Bundle{Names: names}); err == nil || !strings.Contains(err.Error(), "tun_metadata3") {
		t.Errorf("an option in use is gone: %v", err)
	}
}

// TestOptionsAreTraced: the trace of a made-up packet shows its options, and those that it leaves with.
func TestOptionsAreTraced(t *testing.T) {
	r := newOptionsRig(t, "tun_metadata0=0xa actions=set_field:10.0.0.2->tun_dst,set_field:2->tun_metadata0,output:9")
	m, err := parse.Match("in_port=1,tun_metadata0=0xa,udp,nw_ttl=64", nil)
	r.check(err)
	tr, err := r.sw.Trace(&telemetry.TraceRequest{InPort: 1, Metadata: m, Frame: flow.Compose(&m.Value)})
	r.check(err)
	last := tr.Steps[len(tr.Steps)-1]
	if last.Kind != telemetry.StepOutput || last.Tunnel.Options != optionTwo {
		t.Errorf("%+v", last)
	}
	if text := flow.KeyText(&tr.Start, nil); !strings.Contains(text, "tun_metadata0=0xa") {
		t.Error(text)
	}
}

// TestOptionsAreNotOffloaded: the kernel forwards no connection whose packets leave with options, and takes
// no packet that comes with some.
func TestOptionsAreNotOffloaded(t *testing.T) {
	for _, set := range []string{"", ",set_field:2->tun_metadata0"} {
		r, _, _ := tunnelRig(t, tunnel.KindGeneve, false)
		names := flow.NewNames()
		r.check(names.SetTunnelOptions(numberedOptions))
		r.check(r.sw.Apply(&flow.Bundle{Names: names}))
		r.check(r.sw.Apply(&flow.Bundle{Add: r.program("table=2,priority=1,in_port=1 actions=set_field:02:00:00:00:00:77->eth_dst," + toNode(false) + set + ",output:2").Entries}))
		if there, back := r.talkFar(); there != (set == "") || !back {
			t.Errorf("%q: offloaded there %v and back %v", set, there, back)
		}
	}
}
