package dataplane_test

import (
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

const anyTCP = "in_port=1,tcp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,tcp_src=1000,tcp_dst=80,tcp_flags=+syn"

// TestWalk follows one packet through small pipelines: what became of it, as
// rig.outcome says.
func TestWalk(t *testing.T) {
	for _, c := range []struct {
		name, flows, want string
	}{
		{"priority", "table=0,priority=1,ip actions=output:2\ntable=0,priority=2,tcp actions=output:3\ntable=0,priority=0 actions=output:4", "3"},
		{"lower priority when the higher does not match", "table=0,priority=9,udp actions=output:3\ntable=0,priority=1 actions=output:2", "2"},
		{"goto_table", "table=0 actions=goto_table:5\ntable=5 actions=output:2", "2"},
		{"goto_table to a table without entries", "table=0 actions=goto_table:5", "drop table_miss in 5"},
		{"table-miss", "table=0,udp actions=output:2", "drop table_miss in 0"},
		{"table-miss in a later table", "table=0 actions=goto_table:1\ntable=1,udp actions=output:2", "drop table_miss in 1"},
		{"drop", "table=0 actions=goto_table:1\ntable=1 actions=drop", "drop entry in 1"},
		{"no action that sends, in a later table", "table=0 actions=resubmit(,3),goto_table:1\ntable=1 actions=resubmit(,2)\ntable=2 actions=set_field:1->reg0\ntable=3 actions=set_field:1->reg0", "drop no_output in 2"},
		{"no action that sends", "table=0 actions=set_field:1->reg0", "drop no_output in 0"},
		{"resubmit returns", "table=0 actions=resubmit(,1),output:3\ntable=1 actions=output:2", "2 3"},
		{"resubmit keeps changes", "table=0 actions=resubmit(,1),output:NXM_NX_REG1[]\ntable=1 actions=set_field:4->reg1", "4"},
		{"resubmit after a miss goes on", "table=0 actions=resubmit(,1),output:3\ntable=1,udp actions=output:2", "3"},
		{"resubmit with a port", "table=0 actions=resubmit(7,1)\ntable=1,in_port=7 actions=output:2\ntable=1,priority=0 actions=drop", "2"},
		{"resubmit with a port gives the port back", "table=0 actions=resubmit(7,1),resubmit(,2)\ntable=1 actions=set_field:1->reg0\ntable=2,in_port=1 actions=output:2", "2"},
		{"resubmit in a called table that jumps", "table=0 actions=resubmit(,1),output:3\ntable=1 actions=goto_table:2\ntable=2 actions=output:2", "2 3"},
		{"output to the port of entry", "table=0 actions=output:1", "drop to_in_port in 0"},
		{"output to the port of entry and another", "table=0 actions=output:1,output:2", "2"},
		{"IN_PORT", "table=0 actions=IN_PORT", "1"},
		{"FLOOD", "table=0 actions=FLOOD", "2 3 4"},
		{"ALL", "table=0 actions=ALL", "2 3 4"},
		{"output by register", "table=0 actions=set_field:3->reg1,output:NXM_NX_REG1[]", "3"},
		{"output by part of a register", "table=0 actions=set_field:0x30->reg1,output:NXM_NX_REG1[4..7]", "3"},
		{"output to a port that is not there", "table=0 actions=output:40", "drop no_such_port in 0"},
		{"tunnel", "table=0 actions=set_field:192.0.2.1->tun_dst,output:9", "9"},
		{"tunnel without tun_dst", "table=0 actions=output:9", "drop no_tunnel_dst in 0"},
		{"FLOOD with tun_dst", "table=0 actions=set_field:192.0.2.1->tun_dst,FLOOD", "2 3 4 9"},
		{"one port twice", "table=0 actions=output:2,output:2", "2 2"},
		{"loop of resubmits", "table=0 actions=resubmit(,0)", "drop too_deep in 0"},
		{"many resubmits", "table=0 actions=resubmit(,0),resubmit(,0)", "drop too_deep in 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.flows)
			if got := r.outcome(anyTCP); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestCloneIsolates checks that what clone() changes, in bytes and in registers,
// is undone behind it.
func TestCloneIsolates(t *testing.T) {
	r := newRig(t, `
		table=0,tcp actions=clone(set_field:4->reg1,set_field:1.1.1.1->nw_dst,set_field:7->tcp_dst,output:2),resubmit(,1)
		table=1,tcp,reg1=0,nw_dst=10.0.0.2 actions=output:3
		table=1,priority=0 actions=output:4`)
	out := r.send(anyTCP)
	r.wantPorts(out, 2, 3)
	_, frame := r.compose(anyTCP)
	if string(out[1].frame) != string(frame) {
		t.Errorf("behind clone() the packet left as %x, came as %x", out[1].frame, frame)
	}
	if got := out[0].field(flow.IPDst) + ":" + out[0].field(flow.TCPDst); got != "1.1.1.1:7" {
		t.Errorf("inside clone() the packet left to %s", got)
	}
}

// TestRewriteBetweenOutputs checks that a frame leaves as it was at its output.
func TestRewriteBetweenOutputs(t *testing.T) {
	r := newRig(t, "table=0,tcp actions=set_field:1->tcp_dst,output:2,set_field:2->tcp_dst,output:3,push_vlan:0x8100,output:4,pop_vlan,set_field:3->tcp_dst,IN_PORT,set_field:4->tcp_dst")
	out := r.send(anyTCP)
	r.wantPorts(out, 1, 2, 3, 4)
	for i, want := range []string{"3", "1", "2", "2"} {
		if got := out[i].field(flow.TCPDst); got != want {
			t.Errorf("by port %d with tcp_dst %s, want %s", out[i].port, got, want)
		}
	}
	if out[3].field(flow.VlanTCI) != "0x1000" || out[0].field(flow.VlanTCI) != "0" {
		t.Errorf("tags %s and %s, want one on port 4 only", out[3].field(flow.VlanTCI), out[0].field(flow.VlanTCI))
	}
}

// TestTunnelOutput checks what goes with a frame to the tunnel port, and that
// two outputs keep their own.
func TestTunnelOutput(t *testing.T) {
	r := newRig(t, "table=0 actions=set_field:192.0.2.1->tun_dst,set_field:5->tun_id,output:9,set_field:192.0.2.2->tun_dst,output:9,output:2")
	out := r.send(anyTCP)
	r.wantPorts(out, 2, 9, 9)
	for i, dst := range []string{"192.0.2.1", "192.0.2.2"} {
		if got := out[i+1].tunnel; got.Dst != packettest.Addr(dst) || got.ID != 5 {
			t.Errorf("tunnel %d to %v, VNI %d; want %s, VNI 5", i, got.Dst, got.ID, dst)
		}
	}
}

// dropCase is one way to lose a packet for a reason.
type dropCase struct {
	reason telemetry.DropReason
	flows  string
	want   string // as rig.outcome says
	setup  func(*rig)
	packet string // anyTCP when empty
	frame  []byte // in place of packet
	undone packet.Offload
}

func dropCases() []dropCase {
	return append(securityCases(), []dropCase{
		{reason: telemetry.DropByEntry, flows: "table=1 actions=goto_table:2\ntable=2 actions=drop", want: "in 2"},
		{reason: telemetry.DropTableMiss, flows: "table=1 actions=goto_table:2\ntable=2,arp actions=drop", want: "in 2"},
		{reason: telemetry.DropNoOutput, flows: "table=1 actions=set_field:1->reg0", want: "in 1"},
		{reason: telemetry.DropToInPort, flows: "table=1 actions=goto_table:2\ntable=2 actions=output:1", want: "in 2"},
		{reason: telemetry.DropNoSuchPort, flows: "table=1 actions=output:50", want: "in 1"},
		{reason: telemetry.DropNoTunnelDst, flows: "table=1 actions=output:9", want: "in 1"},
		{reason: telemetry.DropTTL, flows: "table=1,ip actions=goto_table:2\ntable=2,ip actions=dec_ttl,output:2", want: "in 2", packet: strings.Replace(anyTCP, "nw_ttl=64", "nw_ttl=1", 1)},
		{reason: telemetry.DropMeter, flows: "table=1 actions=meter:1,output:2", want: "in 1", setup: func(r *rig) { r.send(anyTCP) }},
		{reason: telemetry.DropTooDeep, flows: "table=1 actions=goto_table:2\ntable=2 actions=resubmit(,2)", want: "in 2"},
		{reason: telemetry.DropNoBucket, flows: "table=1 actions=group:1", want: "in 1"},
		{reason: telemetry.DropRuntFrame, flows: "table=1 actions=output:2", want: "in 1", frame: make([]byte, 13)},
		{reason: telemetry.DropNoFrame, flows: "table=1 actions=clone(output:2),set_field:1->reg0", want: "in 1", frame: make([]byte, packet.LargeBuffer)},
		{reason: telemetry.DropPacketInFull, flows: "table=1 actions=controller", want: "in 1", setup: fillPacketIns},
		{reason: telemetry.DropControllerAway, flows: "table=1 actions=controller", want: "in 1", setup: func(r *rig) { r.sw.SetControllerAway(true) }},
		{reason: telemetry.DropNoReceive, flows: "table=1 actions=output:2", want: "in 1", setup: func(r *rig) { r.check(r.sw.ConfigurePort(1, telemetry.PortConfig{NoReceive: true})) }},
		{reason: telemetry.DropTunnelOption, flows: "table=1 actions=output:2", want: "in 1", setup: func(r *rig) { r.options = optionOther }},
		{reason: telemetry.DropNoForward, flows: "table=1 actions=output:2", want: "in 1", setup: func(r *rig) { r.check(r.sw.ConfigurePort(2, telemetry.PortConfig{NoForward: true})) }},
		{reason: telemetry.DropNoPipeline, want: "in none"},
		{reason: telemetry.DropReservedMAC, flows: "table=1 actions=NORMAL", want: "in 1", packet: strings.Replace(anyTCP, "dl_dst=02:00:00:00:00:02", "dl_dst=01:80:c2:00:00:0e", 1)},
		{reason: telemetry.DropNATExhausted, flows: "table=1,tcp actions=ct(commit,zone=7,nat(src=10.9.9.9:5000),table=2)\ntable=2 actions=output:2", want: "in 1",
			setup: func(r *rig) { r.send(strings.Replace(anyTCP, "tcp_src=1000", "tcp_src=999", 1)) }},
		{reason: telemetry.DropConntrackFull, flows: "table=1,tcp actions=ct(commit,zone=7,table=2)\ntable=2 actions=output:2", want: "in 1",
			setup: func(r *rig) { r.conntrack.SetMax(0) }},
		{reason: telemetry.DropBadOffload, flows: "table=1 actions=output:2", want: "in 1", undone: packet.Offload{ChecksumPartial: true, ChecksumStart: 60}},
		{reason: telemetry.DropZoneFull, flows: "table=1,tcp actions=ct(commit,zone=7,table=2)\ntable=2 actions=output:2", want: "in 1",
			setup: func(r *rig) { r.conntrack.SetLimit(7, 0) }},
		{reason: telemetry.DropServerFirst, flows: "table=1,tcp actions=ct(commit,zone=7,table=2)\ntable=2 actions=output:2", want: "in 1",
			packet: strings.Replace(anyTCP, "+syn", "+ack", 1),
			setup: func(r *rig) {
				r.conntrack.Shield([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:1000")}, math.MaxInt64)
			}},
		{reason: telemetry.DropFragShape, flows: tracked, want: "in 1", frame: piece(1, 0, 228, true)},
		{reason: telemetry.DropFragTooLong, flows: tracked, want: "in 1", frame: piece(1, 65024, 520, true)},
		{reason: telemetry.DropFragTooMany, flows: tracked, want: "in 1", frame: piece(1, 0, 400, true),
			setup: func(r *rig) { r.sendPieces(65, func(i int) []byte { return piece(1, 400*(i+1), 400, true) }) }},
		{reason: telemetry.DropFragOverlap, flows: tracked, want: "in 1", frame: piece(1, 0, 400, true),
			setup: func(r *rig) { r.sendPieces(2, func(i int) []byte { return piece(1, 800-8*i, 400, true) }) }},
		{reason: telemetry.DropFragDuplicate, flows: tracked, want: "in 1", frame: piece(1, 0, 400, true),
			setup: func(r *rig) { r.sendFrame(1, piece(1, 0, 400, true)) }},
		{reason: telemetry.DropFragFull, flows: tracked, want: "in 1", frame: piece(200, 0, 400, true),
			setup: func(r *rig) { r.sendPieces(128, func(i int) []byte { return piece(i, 0, 400, true) }) }},
		{reason: telemetry.DropFragExpired, flows: tracked, want: "in 1", frame: piece(2, 0, 400, true),
			setup: func(r *rig) { r.sendFrame(1, piece(1, 0, 400, true)); *r.now += 15e9 }},
		{reason: telemetry.DropNewRate, flows: "table=1,tcp actions=ct(commit,zone=7,table=2)\ntable=2 actions=output:2", want: "in 1",
			setup: func(r *rig) {
				r.conntrack.SetNewRate(1)
				for _, port := range []string{"997", "998"} {
					r.send(strings.Replace(anyTCP, "tcp_src=1000", "tcp_src="+port, 1))
				}
			}},
		{reason: telemetry.DropSegments, flows: "table=1 actions=output:2", want: "in 1", frame: packettest.TCP4(packettest.Options{Payload: make([]byte, 1040)}),
			undone: packet.Offload{ChecksumPartial: true, ChecksumStart: 34, ChecksumOffset: 16, SegmentSize: 8}},
		{reason: telemetry.DropPortShare, flows: "table=1,tcp actions=ct(commit,zone=7,table=2)\ntable=2 actions=output:2", want: "in 1",
			setup: func(r *rig) { r.establish(19); r.conntrack.SetMax(20) }},
	}...)
}

// establish makes n TCP connections of port 1 that both ends take part in.
func (r *rig) establish(n int) {
	for i := range n {
		client := packettest.Options{Src: packettest.Addr("10.0.0.1"), Dst: packettest.Addr("10.0.0.2"), SrcPort: uint16(2000 + i), DstPort: 80}
		server := packettest.Options{Src: client.Dst, Dst: client.Src, SrcPort: client.DstPort, DstPort: client.SrcPort}
		for _, o := range []struct {
			side  packettest.Options
			flags uint16
			seq   uint32
			ack   uint32
		}{{client, packet.TCPSyn, 1, 0}, {server, packet.TCPSyn | packet.TCPAck, 9, 2}, {client, packet.TCPAck, 2, 10}} {
			o.side.TCPFlags, o.side.Seq, o.side.Ack = o.flags, o.seq, o.ack
			r.sendFrame(1, packettest.TCP4(o.side))
		}
	}
}

// fillPacketIns gives the switch in one go more packets than the queue of
// packet-ins holds.
func fillPacketIns(r *rig) {
	r.Helper()
	_, frame := r.compose(anyTCP)
	for range 256 {
		r.check(r.ports[1].Send(frame))
	}
}

// TestDropReasons produces every drop reason, counted under the table where the
// packet was dropped. A reason that no case produces fails it.
func TestDropReasons(t *testing.T) {
	seen := map[telemetry.DropReason]bool{}
	for _, c := range dropCases() {
		seen[c.reason] = true
		t.Run(c.reason.String(), func(t *testing.T) {
			r := newRigOf(t, parse.Sources{
				Flows:  parse.Text("flows", c.flows),
				Groups: parse.Text("groups", "group_id=1,type=select"),
				Meters: parse.Text("meters", "meter=1 pktps burst bands=\ntype=drop rate=1 burst_size=1"),
			})
			if c.setup != nil {
				c.setup(r)
			}
			before := r.sw.Drops()[c.reason]
			if c.frame == nil {
				if c.packet == "" {
					c.packet = anyTCP
				}
				_, c.frame = r.compose(c.packet)
			}
			want := fmt.Sprintf("drop %s %s", c.reason, c.want)
			r.undone = c.undone
			got := r.outcomeOf(1, c.frame)
			if c.reason == telemetry.DropPacketInFull {
				got = strings.Trim(got, "agent ")
				want = strings.Trim(want, "agent ")
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if n := r.sw.Drops()[c.reason] - before; n != 1 {
				t.Errorf("%d drops counted, want 1", n)
			}
			wantDropped(t, r, &c)
			if c.reason.Sentence() == "" || !strings.HasSuffix(c.reason.Sentence(), ".") {
				t.Errorf("the reason's sentence is %q", c.reason.Sentence())
			}
		})
	}
	for _, reason := range telemetry.DropReasons() {
		if !seen[reason] {
			t.Errorf("no case loses a packet for %s", reason)
		}
	}
}
