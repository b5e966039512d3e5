package dataplane_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// closeSwitch ends a test's switch: whatever the test did, no packet is missing,
// neither before nor after.
func closeSwitch(t testing.TB, sw *dataplane.Switch) {
	t.Helper()
	wantBalance(t, sw)
	if err := sw.Close(); err != nil {
		t.Error(err)
	}
	wantBalance(t, sw)
}

// wantBalance checks that all sums of a switch agree, with one another and with
// what its ports have counted.
func wantBalance(t testing.TB, sw *dataplane.Switch) {
	t.Helper()
	counters := sw.PacketCounters()
	if err := counters.Check(); err != nil {
		t.Errorf("sums do not agree: %v", err)
	}
	all := sw.Ports()
	for i, p := range all {
		x := counters.Ports[i].PacketCounters
		got := [3]uint64{x.Received, x.Sent, x.Refused}
		want := [3]uint64{p.RxPackets - p.ByKernel.RxPackets, p.TxPackets - p.ByKernel.TxPackets, p.TxDropped + p.TxErrors}
		if got != want {
			t.Errorf("port %d: received, sent and refused are %v, and %v by its own counters", p.No, got, want)
		}
	}
}

// TestPacketCounters shows each term: of the port that a packet enters by, and of the
// switch.
func TestPacketCounters(t *testing.T) {
	const flows = `
		table=0,priority=9,udp,tp_dst=1 actions=output:2,output:3,output:4
		table=0,priority=9,udp,tp_dst=2 actions=controller,output:2
		table=0,priority=9,udp,tp_dst=3 actions=controller
		table=0,priority=9,udp,tp_dst=4 actions=drop
		table=0,priority=8,ip actions=ct(table=1,zone=3)
		table=1 actions=output:2`
	send := func(port int) string {
		return fmt.Sprintf("udp,in_port=1,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,udp_src=9,udp_dst=%d", port)
	}
	for _, c := range []struct {
		name string
		do   func(r *rig)
		want telemetry.PacketCounters // of port 1
		own  telemetry.PacketCounters
	}{
		{"output", func(r *rig) { r.send(send(9)) }, telemetry.PacketCounters{Received: 1, Queued: 1}, telemetry.PacketCounters{}},
		{"three outputs", func(r *rig) { r.send(send(1)) }, telemetry.PacketCounters{Received: 1, Copied: 2, Queued: 3}, telemetry.PacketCounters{}},
		{"to the agent too", func(r *rig) { r.send(send(2)) }, telemetry.PacketCounters{Received: 1, Copied: 1, Queued: 1, Agent: 1}, telemetry.PacketCounters{}},
		{"to the agent", func(r *rig) { r.send(send(3)) }, telemetry.PacketCounters{Received: 1, Agent: 1}, telemetry.PacketCounters{}},
		{"dropped, replayed too", func(r *rig) { r.send(send(4)); r.send(send(4)); r.send(send(4)) }, telemetry.PacketCounters{Received: 3, Dropped: 3}, telemetry.PacketCounters{}},
		{"a fragment waits", func(r *rig) { r.sendFrame(1, piece(1, 0, 400, true)) }, telemetry.PacketCounters{Received: 1, Held: 1}, telemetry.PacketCounters{}},
		{"fragments that went on", func(r *rig) { r.sendFrame(1, piece(1, 0, 400, true)); r.sendFrame(1, piece(1, 400, 400, false)) },
			telemetry.PacketCounters{Received: 2, Queued: 2}, telemetry.PacketCounters{}},
		{"a fragment that waited in vain", func(r *rig) { r.sendFrame(1, piece(1, 0, 400, true)); *r.now += 20e9; r.sw.Expire() },
			telemetry.PacketCounters{Received: 1, Dropped: 1}, telemetry.PacketCounters{}},
		{"packet-out", func(r *rig) {
			_, frame := r.compose(anyTCP)
			r.check(r.sw.PacketOut(1, []flow.Action{flow.Output{Port: 2}, flow.Output{Port: 3}}, frame))
		}, telemetry.PacketCounters{}, telemetry.PacketCounters{Made: 1, Copied: 1, Queued: 2}},
		{"a frame too short", func(r *rig) { r.sendFrame(1, make([]byte, 13)) }, telemetry.PacketCounters{Received: 1, Dropped: 1}, telemetry.PacketCounters{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, flows)
			c.do(r)
			counters := r.sw.PacketCounters()
			if got := counters.Ports[0].PacketCounters; got != c.want {
				t.Errorf("port 1: %+v, want %+v", got, c.want)
			}
			if counters.Own != c.own {
				t.Errorf("the switch's own: %+v, want %+v", counters.Own, c.own)
			}
			wantBalance(t, r.sw)
		})
	}
}

// TestPacketCountersOfSegments: a frame that is cut for a port that cannot is one that came
// and many that left.
func TestPacketCountersOfSegments(t *testing.T) {
	r := newRig(t, "table=0 actions=output:2")
	_, frame := r.compose(anyTCP)
	r.undone = packet.Offload{ChecksumPartial: true, ChecksumStart: 34, ChecksumOffset: 16, SegmentSize: 500}
	out := r.sendFrame(1, lengthened(frame, 1800))
	want := telemetry.PacketCounters{Received: 1, Cut: int64(len(out)) - 1, Queued: uint64(len(out))}
	if got := r.sw.PacketCounters().Ports[0].PacketCounters; len(out) < 3 || got != want {
		t.Errorf("%d segments left: %+v, want %+v", len(out), got, want)
	}
}

// lengthened is a TCP packet over IPv4 with a payload of n bytes.
func lengthened(frame []byte, n int) []byte {
	l := packet.ParseLayers(frame)
	b := append(append([]byte(nil), frame[:l.End]...), make([]byte, n)...)
	ip := packet.IPv4(b[l.L3:])
	b[l.L3+2], b[l.L3+3] = byte((l.End-l.L3+n)>>8), byte(l.End-l.L3+n)
	ip.UpdateChecksum()
	return b
}

// TestPacketCountersOutliveTheirPort: what a port has moved stays in the total when it is
// gone, also what still waited then.
func TestPacketCountersOutliveTheirPort(t *testing.T) {
	r := newRig(t, "table=0,ip actions=ct(table=1,zone=3)\ntable=1 actions=output:2")
	r.send(anyTCP)
	r.sendFrame(1, piece(1, 0, 400, true))
	r.check(r.sw.RemovePort(1))
	delete(r.ports, 1)
	counters := r.sw.PacketCounters()
	if want := (telemetry.PacketCounters{Received: 2, Queued: 1, Held: 1}); counters.Gone != want || counters.Waiting != 1 {
		t.Errorf("gone: %+v, want %+v", counters.Gone, want)
	}
	wantBalance(t, r.sw)
	for range 2 {
		*r.now += 20e9
		r.sw.Expire()
	}
	r.addPort(1, memory.Options{})
	if want := (telemetry.PacketCounters{Received: 2, Queued: 1, Dropped: 1}); r.sw.PacketCounters().Gone != want {
		t.Errorf("gone: %+v, want %+v", r.sw.PacketCounters().Gone, want)
	}
}

// TestPacketCountersCheck: a packet that nothing accounts for is found, and its port named.
func TestPacketCountersCheck(t *testing.T) {
	for want, s := range map[string]telemetry.SwitchPacketCounters{
		"port 4 (p4): 1 packets are missing":                      {Ports: []telemetry.PortPacketCounters{{No: 4, Name: "p4", PacketCounters: telemetry.PacketCounters{Received: 3, Queued: 2}}}},
		"of 3 packets handed to it 1 were sent and 1 refused":     {Own: telemetry.PacketCounters{Handed: 3, Sent: 1, Refused: 1}},
		"2 packets were queued, and 1 handed":                     {Total: telemetry.PacketCounters{Queued: 2, Handed: 1}},
		"0 packets were dropped, and the tables count 5":          {Drops: 5},
		"0 fragments are held, and 1 wait":                        {Waiting: 1},
		"ports that are gone: -1 packets are missing: {Received:": {Gone: telemetry.PacketCounters{Agent: 1}},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
