package dataplane_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// Packets to the agent and from it, and the meters that stand before it.

// TestPacketIn checks what the agent gets of a packet.
func TestPacketIn(t *testing.T) {
	r := newRig(t, `
		table=0 actions=set_field:9->reg2,goto_table:3
		table=3,cookie=0x55,priority=7,tcp actions=set_field:1.1.1.1->nw_dst,controller(reason=no_match,id=62373,userdata=01.02.ff),resubmit(,4),controller(max_len=20)
		table=4,cookie=0x66,priority=1 actions=set_field:2->reg2`)
	if got := r.outcome(anyTCP); got != "agent agent" {
		t.Fatalf("%q", got)
	}
	first, second := r.packetIns[0], r.packetIns[1]
	if first.InPort != 1 || first.Table != 3 || first.Reason != "no_match" || !bytes.Equal(first.UserData, []byte{1, 2, 0xff}) {
		t.Errorf("packet-in %+v", first)
	}
	if first.Key.Reg(2) != 9 {
		t.Errorf("reg2 is %d in the packet-in, want 9", first.Key.Reg(2))
	}
	if got := (sent{frame: first.Frame}); got.ends() != "10.0.0.1:1000 > 1.1.1.1:80" {
		t.Errorf("the frame is %s, want it as it was at the action", got.ends())
	}
	if second.Table != 3 || len(second.Frame) != 20 || second.UserData != nil {
		t.Errorf("second packet-in %+v", second)
	}
}

// TestPacketInPause ends the walk where the action says pause.
func TestPacketInPause(t *testing.T) {
	r := newRig(t, "table=0 actions=controller(pause),output:2")
	if got := r.outcome(anyTCP); got != "agent" {
		t.Errorf("%q, want the agent only", got)
	}
}

// TestPacketInQueue fills the queue: what does not fit is dropped and counted,
// and there is room again when the subscriber has taken them.
func TestPacketInQueue(t *testing.T) {
	r := newRig(t, "table=0 actions=controller")
	_, frame := r.compose(anyTCP)
	for range 300 {
		r.check(r.ports[1].Send(frame))
	}
	r.sw.Poll()
	if n := r.sw.Drops()[telemetry.DropPacketInFull]; len(r.packetIns) != 256 || n != 44 {
		t.Errorf("%d packet-ins, %d dropped; want 256 and 44", len(r.packetIns), n)
	}
	if got := r.outcome(anyTCP); got != "agent" {
		t.Errorf("afterwards: %q", got)
	}
}

// actions parses a list of actions.
func (r *rig) actions(text string) []flow.Action {
	r.Helper()
	a, err := parse.Actions(text, r.sw.Names())
	r.check(err)
	return a
}

// TestPacketOut runs actions of the agent's. A live trace sees each packet.
func TestPacketOut(t *testing.T) {
	flows := `
		table=0,tcp,in_port=3 actions=output:4
		table=0,tcp,nw_dst=1.2.3.4 actions=output:4
		table=1,ct_state=+trk,tcp,nw_dst=1.2.3.4 actions=output:4`
	for _, c := range []struct {
		name, actions string
		in            uint32
		want          []uint32
	}{
		{"output", "output:2", 1, []uint32{2}},
		{"two outputs", "output:2,output:3", 1, []uint32{2, 3}},
		{"into the tables, from the port given", "resubmit(,0)", 3, []uint32{4}},
		{"set before", "set_field:1.2.3.4->nw_dst,resubmit(,0)", 1, []uint32{4}},
		{"back to the port given", "output:3", 3, nil},
		{"IN_PORT", "IN_PORT", 3, []uint32{3}},
		{"FLOOD", "FLOOD", 3, []uint32{1, 2, 4}},
		{"nothing", "", 1, nil},
		{"translated", "ct(commit,zone=5,nat(dst=1.2.3.4),table=1)", 1, []uint32{4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, flows)
			_, frame := r.compose(anyTCP)
			var list []flow.Action
			if c.actions != "" {
				list = r.actions(c.actions)
			}
			watched := r.watch(dataplane.LiveRequest{Match: wantAll})
			r.check(r.sw.PacketOut(c.in, list, frame))
			out := r.collect()
			r.wantPorts(out, c.want...)
			if walks := taken(t, watched); len(walks) != 1 || walks[0].Live.Port != c.in || len(walks[0].Verdict.Outputs) != len(c.want) ||
				!bytes.Equal(walks[0].Live.Frame, frame) {
				t.Errorf("watched %d walks: %+v", len(walks), walks)
			}
			for _, s := range out {
				wantSound(t, s.frame)
			}
		})
	}
}

// TestPacketOutRefused checks that what cannot be done is said, and nothing is
// sent.
func TestPacketOutRefused(t *testing.T) {
	r := newRig(t, "table=0 actions=output:2")
	_, frame := r.compose(anyTCP)
	for _, c := range []struct {
		actions string
		frame   []byte
		want    string
	}{
		{"output:2", frame[:13], "shorter than an Ethernet header"},
		{"output:2", nil, "shorter than an Ethernet header"},
		{"group:99", frame, "group 99 does not exist"},
		{"meter:99", frame, "meter 99 does not exist"},
		{"clone(group:99)", frame, "group 99 does not exist"},
		{"learn(table=99,NXM_OF_ETH_SRC[])", frame, "table 99 to learn into does not exist"},
	} {
		err := r.sw.PacketOut(1, r.actions(c.actions), c.frame)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.actions, err, c.want)
		}
	}
	r.wantPorts(r.collect())
	empty := newRigOf(t, parse.Sources{})
	if err := empty.sw.PacketOut(1, r.actions("output:2"), frame); err == nil {
		t.Error("a switch without a pipeline took a packet-out")
	}
}

// burst sends n packets at once and returns how many left.
func (r *rig) burst(n int, frame []byte) int {
	r.Helper()
	for range n {
		r.check(r.ports[1].Send(frame))
	}
	r.sw.Poll()
	return len(r.collect())
}

// TestMeters checks rate, burst and refill, in packets and in kilobits.
func TestMeters(t *testing.T) {
	const frameBits = 125 * 8 // a frame of 125 bytes is 1000 bits
	for _, c := range []struct {
		name, meter string
		first       int // of 100 packets at once
		wait        time.Duration
		then        int
	}{
		{"packets", "meter=1 pktps bands=\ntype=drop rate=10", 10, 300 * time.Millisecond, 3},
		{"packets with a burst", "meter=1 pktps burst bands=\ntype=drop rate=10 burst_size=50", 50, time.Second, 10},
		{"kilobits", "meter=1 kbps bands=\ntype=drop rate=20", 20, 100 * time.Millisecond, 2},
		{"kilobits with a burst", "meter=1 kbps burst bands=\ntype=drop rate=20 burst_size=40", 40, time.Hour, 40},
		{"less than a packet's time", "meter=1 pktps bands=\ntype=drop rate=10", 10, 99 * time.Millisecond, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRigOf(t, parse.Sources{Flows: parse.Text("flows", "table=0 actions=meter:1,output:2"), Meters: parse.Text("meters", c.meter)})
			frame := make([]byte, frameBits/8)
			if n := r.burst(100, frame); n != c.first {
				t.Errorf("%d of 100 packets passed at once, want %d", n, c.first)
			}
			r.warp(c.wait)
			if n := r.burst(100, frame); n != c.then {
				t.Errorf("%d of 100 packets passed after %v, want %d", n, c.wait, c.then)
			}
			m, dropped := r.sw.Meters()[0], uint64(200-c.first-c.then)
			if m.Packets != 200 || m.Bytes != 200*frameBits/8 || m.Dropped[0] != dropped || r.sw.Drops()[telemetry.DropMeter] != dropped {
				t.Errorf("meter counts %d packets, %d bytes, %v dropped; drops %v", m.Packets, m.Bytes, m.Dropped, r.sw.Drops())
			}
		})
	}
}

// TestMeterOfController meters packet-ins by the meter that the action names.
func TestMeterOfController(t *testing.T) {
	r := newRigOf(t, parse.Sources{
		Flows:  parse.Text("flows", "table=0 actions=controller(meter_id=1)"),
		Meters: parse.Text("meters", "meter=1 pktps bands=\ntype=drop rate=1"),
	})
	if a, b := r.outcome(anyTCP), r.outcome(anyTCP); a != "agent" || b != "drop meter in 0" {
		t.Errorf("two packets at once: %q and %q", a, b)
	}
}

// TestConjunction follows packets through the shape of AntreaPolicyIngressRule:
// an allow rule of three clauses above a drop rule of two, connections that were
// judged above both.
func TestConjunction(t *testing.T) {
	r := newRig(t, `
		table=0,ip actions=set_field:0x25->reg1,goto_table:1
		table=1,priority=64990,tcp,tp_dst=9999 actions=output:2
		table=1,priority=14500,conj_id=6,ip actions=set_field:0x6->reg6,goto_table:2
		table=1,priority=14500,ip,nw_src=10.0.0.1 actions=conjunction(6,1/3)
		table=1,priority=14500,ip,nw_src=10.0.0.2 actions=conjunction(6,1/3),conjunction(8,1/2)
		table=1,priority=14500,reg1=0x25 actions=conjunction(6,2/3)
		table=1,priority=14500,tcp,tp_dst=80 actions=conjunction(6,3/3)
		table=1,priority=14500,udp,tp_dst=53 actions=conjunction(8,2/2)
		table=1,priority=14500,conj_id=8,ip actions=output:4
		table=1,priority=14499,conj_id=4 actions=drop
		table=1,priority=14499,reg1=0x25 actions=conjunction(4,1/2)
		table=1,priority=14499,tcp actions=conjunction(4,2/2)
		table=1,priority=0 actions=output:3
		table=2,reg6=6,conj_id=0,ip actions=output:2`)
	udp := strings.NewReplacer(",tcp_flags=+syn", "", "tcp", "udp").Replace
	for _, c := range []struct{ name, packet, want string }{
		{"all clauses", segment(1, "10.0.0.1:1", "10.0.0.9:80", "+syn"), "2"},
		{"another source of clause 1", segment(1, "10.0.0.2:1", "10.0.0.9:80", "+syn"), "2"},
		{"wrong source", segment(1, "10.0.0.3:1", "10.0.0.9:80", "+syn"), "drop entry in 1"},
		{"wrong port", segment(1, "10.0.0.1:1", "10.0.0.9:81", "+syn"), "drop entry in 1"},
		{"above the rules", segment(1, "10.0.0.3:1", "10.0.0.9:9999", "+syn"), "2"},
		{"an entry in two conjunctions", udp(segment(1, "10.0.0.2:1", "10.0.0.9:53", "+syn")), "4"},
		{"one clause short", udp(segment(1, "10.0.0.1:1", "10.0.0.9:53", "+syn")), "3"},
	} {
		if got := r.outcome(c.packet); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
