package dataplane_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
)

// tracked sends what conntrack takes to port 2.
const tracked = "table=1,ip actions=ct(commit,zone=7,table=2)\ntable=2,ct_state=+trk-inv,ip actions=output:2"

// piece is an IPv4 fragment of n bytes of a UDP datagram.
func piece(id, offset, n int, more bool) []byte {
	flags := uint16(offset / 8)
	if more {
		flags |= packet.IPv4MoreFragments
	}
	return packettest.UDP4(packettest.Options{ID: uint16(id), FlagsOffset: flags, Payload: make([]byte, n-packet.UDPLen)})
}

// sendPieces sends n fragments to port 1, none of which may leave.
func (r *rig) sendPieces(n int, piece func(int) []byte) {
	r.Helper()
	for i := range n {
		if out := r.sendFrame(1, piece(i)); len(out) != 0 {
			r.Fatalf("fragment %d left by port %d", i, out[0].port)
		}
	}
}

// sendAll sends fragments to a port and returns the frames that left by port.
func (r *rig) sendAll(in uint32, fragments [][]byte) map[uint32][][]byte {
	r.Helper()
	out := map[uint32][][]byte{}
	for _, b := range fragments {
		for _, s := range r.sendFrame(in, b) {
			out[s.port] = append(out[s.port], s.frame)
		}
	}
	return out
}

// hairpinFlows translate what port 1 sends to 10.96.0.1 in one zone and its source
// in another, as Antrea does for a hairpin; what comes back is translated back.
const hairpinFlows = `
	table=0,ip,in_port=1 actions=ct(zone=1,nat,table=1)
	table=0,ipv6,in_port=1 actions=ct(zone=1,nat,table=1)
	table=0,ip,in_port=2 actions=ct(zone=2,nat,table=4)
	table=0,ipv6,in_port=2 actions=ct(zone=2,nat,table=4)
	table=1,ct_state=+new+trk,ip actions=ct(commit,zone=1,nat(dst=10.0.0.9:8080),exec(set_field:7->ct_mark),table=2)
	table=1,ct_state=+new+trk,ipv6 actions=ct(commit,zone=1,nat(dst=[fd00::9]:8080),exec(set_field:7->ct_mark),table=2)
	table=1,priority=1 actions=goto_table:2
	table=2,ct_mark=7,ip actions=ct(commit,zone=2,nat(src=10.0.0.7:5000),table=3)
	table=2,ct_mark=7,ipv6 actions=ct(commit,zone=2,nat(src=[fd00::7]:5000),table=3)
	table=3,ct_state=+snat+trk-inv,ip actions=output:2
	table=3,ct_state=+snat+trk-inv,ipv6 actions=output:2
	table=4,ct_state=+trk-inv,ip actions=ct(zone=1,nat,table=5)
	table=4,ct_state=+trk-inv,ipv6 actions=ct(zone=1,nat,table=5)
	table=5,ct_state=+est+rpl-inv+trk,ip actions=output:1
	table=5,ct_state=+est+rpl-inv+trk,ipv6 actions=output:1`

// newJumboRig is a rig on whose ports 1 and 2 no datagram is too long.
func newJumboRig(t testing.TB, flows string) *rig {
	t.Helper()
	r := newRig(t, flows)
	for no := uint32(1); no <= 2; no++ {
		r.check(r.sw.RemovePort(no))
		r.addPort(no, memory.Options{MTU: reassembly.MaxDatagram})
	}
	return r
}

// TestFragmentsAsTheWhole sends a datagram whole through one switch and cut
// into fragments through another: NAT in two zones and back makes the same of
// both.
func TestFragmentsAsTheWhole(t *testing.T) {
	for name, whole := range datagrams() {
		t.Run(name, func(t *testing.T) {
			one, cut := newJumboRig(t, hairpinFlows), newRig(t, hairpinFlows)
			want := one.sendFrame(1, whole)
			one.wantPorts(want, 2)
			parts := packettest.Split(whole, 99, 1208, 2416, 3624)
			slices.Reverse(parts)
			got := cut.sendAll(1, parts)[2]
			if len(got) != 4 {
				t.Fatalf("%d fragments left, want 4; drops %v", len(got), cut.drops())
			}
			if joined := packettest.Join(got); !bytes.Equal(joined, want[0].frame) {
				t.Errorf("the fragments are\n%x, the whole\n%x", joined, want[0].frame)
			}
			if a, b := one.connections(), cut.connections(); !slices.Equal(a, b) {
				t.Errorf("connections\n%v, whole\n%v", b, a)
			}
			if !strings.HasPrefix(name, "tcp") && !strings.HasPrefix(name, "sctp") {
				answerInFragments(t, cut, want[0].frame, whole)
			}
		})
	}
}

// answerInFragments answers a datagram that left by port 2, in fragments, and
// wants the answer back where the datagram came from.
func answerInFragments(t *testing.T, r *rig, request, whole []byte) {
	t.Helper()
	answer := packettest.Split(echoed(request), 5, 1304, 2608)
	back := r.sendAll(2, answer)[1]
	if len(back) != 3 {
		t.Fatalf("%d fragments came back, want 3; drops %v", len(back), r.drops())
	}
	joined := packettest.Join(back)
	l, lw := packet.ParseLayers(joined), packet.ParseLayers(whole)
	if !l.L4Valid(joined) {
		t.Errorf("the answer's checksum is wrong: %x", joined)
	}
	from, to := addresses(joined, &l)
	if src, dst := addresses(whole, &lw); from != dst || to != src {
		t.Errorf("the answer came back from %s to %s", from, to)
	}
}

// echoed is what an echo service answers to a UDP datagram or ping.
func echoed(request []byte) []byte {
	b := bytes.Clone(request)
	l := packet.ParseLayers(b)
	src, n := l.L3+12, 4
	if l.EtherType == packet.EtherTypeIPv6 {
		src, n = l.L3+8, 16
	}
	copy(b[src:], slices.Concat(request[src+n:src+2*n], request[src:src+n]))
	switch l.Proto {
	case packet.ProtoUDP:
		copy(b[l.L4:], slices.Concat(request[l.L4+2:l.L4+4], request[l.L4:l.L4+2]))
	case packet.ProtoICMP:
		packet.ICMP(b[l.L4:]).SetType(packet.ICMPEchoReply)
	case packet.ProtoICMPv6:
		packet.ICMP(b[l.L4:]).SetType(packet.ICMPv6EchoReply)
	}
	l.SetL4Checksum(b)
	return b
}

func addresses(b []byte, l *packet.Layers) (src, dst string) {
	if l.EtherType == packet.EtherTypeIPv4 {
		h := packet.IPv4(b[l.L3:])
		return h.Src().String(), h.Dst().String()
	}
	h := packet.IPv6(b[l.L3:])
	return h.Src().String(), h.Dst().String()
}

// TestFragmentsKeepTheirOwn checks that fragments leave in order with their own
// keys: only the first has ports, and each goes on in its own table.
func TestFragmentsKeepTheirOwn(t *testing.T) {
	r := newRig(t, `
		table=0,udp,nw_frag=first,tp_dst=80 actions=ct(zone=7,commit,table=1)
		table=0,ip,nw_frag=later actions=ct(zone=7,table=2)
		table=1,ct_state=+new+trk-inv,udp,tp_src=1000,ct_nw_proto=17,ct_tp_dst=80 actions=output:2
		table=2,ct_state=+new+trk-inv,ip,ct_nw_proto=17,ct_tp_src=1000,nw_frag=later actions=output:3`)
	parts := packettest.Split(packettest.UDP4(packettest.Options{Payload: make([]byte, 3000)}), 1, 1000, 2000)
	out := r.sendAll(1, [][]byte{parts[2], parts[1], parts[0]})
	if len(out[2]) != 1 || !bytes.Equal(out[2][0], parts[0]) {
		t.Errorf("by port 2 left %x", out[2])
	}
	if len(out[3]) != 2 || !bytes.Equal(out[3][0], parts[1]) || !bytes.Equal(out[3][1], parts[2]) {
		t.Errorf("by port 3 left %x", out[3])
	}
	if len(r.connections()) != 1 {
		t.Errorf("connections %v; the first fragment's action commits", r.connections())
	}
}

// TestFragmentsGoOn pauses fragments inside resubmits, clones, groups and in
// mid-list: what follows runs once for each, when the datagram is whole.
func TestFragmentsGoOn(t *testing.T) {
	whole := packettest.UDP4(packettest.Options{Payload: make([]byte, 2000)})
	for _, c := range []struct {
		name, flows string
		early       string // left by ports before the last fragment came
		want        string
	}{
		{"mid-list", "table=0,ip actions=ct(zone=7,table=1),output:3\ntable=1,ct_state=+new,ip actions=output:2", "", "2 2 3 3"},
		{"no table", "table=0,ip actions=ct(commit,zone=7,nat(dst=10.0.0.9)),resubmit(,1)\ntable=1,ct_state=0,ip actions=output:2", "", "2 2"},
		{"in a resubmit", "table=0,ip actions=resubmit(4,1),output:3,resubmit(,3)\ntable=1,in_port=4,ip actions=ct(zone=7,table=2)\ntable=2,ct_state=+new,ip actions=output:2\ntable=3,ct_state=0,in_port=1,ip actions=output:4", "", "2 2 3 3 4 4"},
		{"nested resubmits", "table=0,ip actions=resubmit(,1),output:4\ntable=1,ip actions=resubmit(,2),output:3\ntable=2,ip actions=ct(zone=7,table=3)\ntable=3,ip actions=output:2", "", "2 2 3 3 4 4"},
		{"in a clone", "table=0,ip actions=clone(ct(zone=7,table=1)),output:3\ntable=1,ct_state=+new,ip actions=output:2", "3", "2 2 3 3"},
		{"in a group of all", "table=0,ip actions=group:1\ntable=1,ct_state=+new,ip actions=output:2", "3", "2 2 3 3"},
		{"twice in one list", "table=0,ip actions=ct(zone=7,table=1),ct(zone=8,table=1)\ntable=1,ct_state=+new,ip actions=output:2", "", "2 2 2 2"},
		{"zones one after the other", "table=0,ip actions=ct(zone=7,table=1)\ntable=1,ip actions=ct(zone=8,table=2)\ntable=2,ip actions=ct(zone=7,table=3)\ntable=3,ct_state=+new,ip actions=output:2", "", "2 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRigOf(t, sourcesOf(c.flows, "group_id=1,type=all,bucket=actions=ct(zone=7,table=1),bucket=actions=output:3", ""))
			parts := packettest.Split(whole, 1, 1000)
			if early := leftBy(r.sendFrame(1, parts[0])); early != c.early {
				t.Errorf("left by ports %q before the last fragment, want %q", early, c.early)
			}
			late := leftBy(r.sendFrame(1, parts[1]))
			all := strings.Fields(c.early + " " + late)
			slices.Sort(all)
			if got := strings.Join(all, " "); got != c.want {
				t.Errorf("left by ports %q, want %q; drops %v", got, c.want, r.drops())
			}
			wantNothingWaits(t, r)
		})
	}
}

func leftBy(out []sent) string {
	var names []string
	for _, s := range out {
		names = append(names, fmt.Sprint(s.port))
	}
	return strings.Join(names, " ")
}

func wantNothingWaits(t *testing.T, r *rig) {
	t.Helper()
	if s := r.sw.Fragments(); s.Datagrams != 0 || s.Fragments != 0 || s.Bytes != 0 {
		t.Errorf("still waiting: %+v", s)
	}
}

// TestFragmentsExpire lets the rest of a datagram never come: without traffic
// the fragments are dropped in the table of their ct(), and a late rest finds
// nothing to complete.
func TestFragmentsExpire(t *testing.T) {
	r := newRig(t, tracked)
	r.sendPieces(2, func(i int) []byte { return piece(1, 400*i, 400, true) })
	r.warp(14 * time.Second)
	if s := r.sw.Fragments(); s.Fragments != 2 {
		t.Errorf("%+v after 14 seconds, want 2 fragments", s)
	}
	r.warp(time.Second)
	wantNothingWaits(t, r)
	if n := r.drops()["drop frag_expired in 1"]; n != 2 {
		t.Errorf("%d fragments expired in table 1, want 2: %v", n, r.drops())
	}
	if out := r.sendFrame(1, piece(1, 800, 400, false)); len(out) != 0 {
		t.Error("the last fragment alone left")
	}
}

// TestFragmentsSeeOneProgram changes the pipeline between two fragments: each
// goes on in the pipeline in which it came.
func TestFragmentsSeeOneProgram(t *testing.T) {
	r := newRig(t, tracked)
	parts := packettest.Split(packettest.UDP4(packettest.Options{Payload: make([]byte, 2000)}), 1, 1000)
	r.sendFrame(1, parts[0])
	r.check(r.sw.Apply(&flow.Bundle{Add: r.program("table=2,priority=40000,ip actions=output:3").Entries}))
	r.wantPorts(r.sendFrame(1, parts[1]), 2, 3)
}

// TestFragmentsInALoop sends a datagram into tables that track it over and
// over: it is dropped as any packet in a loop is.
func TestFragmentsInALoop(t *testing.T) {
	r := newRig(t, "table=0,ip actions=ct(zone=7,table=0)")
	parts := packettest.Split(packettest.UDP4(packettest.Options{Payload: make([]byte, 2000)}), 1, 1000)
	if out := r.sendAll(1, parts); len(out) != 0 {
		t.Errorf("left: %v", out)
	}
	if n := r.sw.Drops()[telemetry.DropTooDeep]; n != 2 {
		t.Errorf("%d fragments dropped in the loop, want 2", n)
	}
	wantNothingWaits(t, r)
}

// TestFragmentDamaged checks that a fragment whose header is damaged is
// +inv at once, and that a datagram damaged behind it is +inv when whole.
func TestFragmentDamaged(t *testing.T) {
	r := newRig(t, "table=0,ip actions=ct(zone=7,table=1)\ntable=1,ct_state=+inv+trk,ip actions=output:2\ntable=1,priority=1,ip actions=output:3")
	parts := packettest.Split(packettest.UDP4(packettest.Options{Payload: make([]byte, 2000)}), 1, 1000)
	header := bytes.Clone(parts[0])
	header[packet.EthernetLen+8]++ // TTL
	r.wantPorts(r.sendFrame(1, header), 2)
	parts[1][len(parts[1])-1]++
	r.sendFrame(1, parts[0])
	r.wantPorts(r.sendFrame(1, parts[1]), 2, 2)
}

// TestTraceOfAFragment says that it waits, or why it could not; with states
// given in conntrack's place it goes on.
func TestTraceOfAFragment(t *testing.T) {
	r := newRig(t, tracked)
	for _, c := range []struct {
		frame  []byte
		states []conntrack.State
		want   string
	}{
		{piece(1, 400, 400, true), nil, "waits in table 1 for the rest of its datagram"},
		{piece(1, 400, 100, true), nil, "dropped in table 1 (frag_shape): " + telemetry.DropFragShape.Sentence()},
		{piece(1, 400, 400, true), []conntrack.State{conntrack.Tracked | conntrack.New}, "output to port 2"},
	} {
		tr, err := r.sw.Trace(&telemetry.TraceRequest{InPort: 1, Frame: c.frame, CTNext: c.states})
		r.check(err)
		if got := tr.Verdict.Text(nil); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	wantNothingWaits(t, r)
}

// TestFragmentsShareFairly lets one port fill its share of what may wait; the
// others' fragments go through.
func TestFragmentsShareFairly(t *testing.T) {
	r := newRig(t, "table=0,ip actions=ct(zone=7,table=1)\ntable=1,ip actions=output:3")
	for id := range 300 {
		for i := range 20 {
			r.sendFrame(1, piece(id, 1400*i, 1400, true))
		}
		if s := r.sw.Fragments(); s.Bytes > reassembly.MaxBytes/reassembly.PortShare || s.Datagrams > reassembly.MaxDatagrams/reassembly.PortShare {
			t.Fatalf("one port's fragments take %+v", s)
		}
	}
	if n := r.sw.Drops()[telemetry.DropFragFull]; n == 0 {
		t.Error("nothing was refused")
	}
	parts := packettest.Split(packettest.UDP4(packettest.Options{Src: packettest.Addr("10.0.0.5"), Payload: make([]byte, 3000)}), 1, 1000, 2000)
	if out := r.sendAll(2, parts)[3]; len(out) != 3 {
		t.Errorf("%d fragments of another port left, want 3", len(out))
	}
	r.warp(reassembly.Timeout)
	wantNothingWaits(t, r)
	if out := r.sendAll(1, parts)[3]; len(out) != 3 {
		t.Errorf("%d fragments left after the others' time, want 3", len(out))
	}
}

// TestPacketOutOfFragments sends a datagram of the agent's in fragments.
func TestPacketOutOfFragments(t *testing.T) {
	r := newRig(t, tracked)
	actions := r.program("actions=resubmit(,1)").Entries[0].Actions
	for _, b := range packettest.Split(packettest.UDP4(packettest.Options{Payload: make([]byte, 2000)}), 1, 1000) {
		r.check(r.sw.PacketOut(flow.PortController, actions, b))
	}
	r.wantPorts(r.collect(), 2, 2)
}

// TestFragmentsReuseMemory sends datagrams in fragments over and over: what they
// wait in is used again.
func TestFragmentsReuseMemory(t *testing.T) {
	r := newRig(t, hairpinFlows)
	pool, batch, taken := packet.NewPool(8, 2048), make([]*packet.Frame, 4), make([]*packet.Frame, 8)
	parts := packettest.Split(datagrams()["udp"], 9, 1208, 2416, 3624)
	pass := func() {
		pool.Get(batch)
		for i, b := range parts {
			batch[i].SetBytes(b)
		}
		r.ports[1].Inject(batch...)
		r.sw.Poll()
		if n := r.ports[2].Collect(taken); n != len(parts) {
			t.Fatalf("%d fragments left, want %d", n, len(parts))
		}
		packet.Release(taken[:len(parts)])
	}
	if n := testing.AllocsPerRun(200, pass); n != 0 {
		t.Errorf("%v allocations for a datagram of %d fragments", n, len(parts))
	}
}

// TestFragmentsOfSeveralWorkers brings the fragments of each datagram to two
// workers at once, both at work: all go on, whole, by whichever worker had the
// last.
func TestFragmentsOfSeveralWorkers(t *testing.T) {
	clock := func() int64 { return 1e12 }
	ct := conntrack.NewTable(conntrack.Config{Now: clock})
	sw, err := dataplane.New(dataplane.Config{Conntrack: ct, Clock: clock, Workers: 2, Cache: walktest.Cache()})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{TB: t, sw: sw, ports: map[uint32]*memory.Port{}}
	r.check(sw.Apply(flow.BundleOf(r.program(hairpinFlows + "\ntable=0,priority=40000,in_port=3,ip actions=set_field:1->in_port,resubmit(,0)"))))
	for no := uint32(1); no <= 3; no++ {
		r.addPort(no, memory.Options{Queue: 4096})
	}
	r.check(sw.MovePort(3, 1))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sw.Run(ctx) }()
	const count = 100 // fewer than may wait, if one worker has all of its fragments first
	whole := datagrams()["udp"]
	for id := range uint32(count) {
		parts := packettest.Split(whole, id, 1208, 2416, 3624)
		for i, b := range parts {
			r.check(r.ports[uint32(1+2*(i%2))].Send(b))
		}
	}
	var out []sent
	for deadline := time.Now().Add(time.Minute); len(out) < 4*count && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		out = append(out, r.collect()...)
	}
	cancel()
	r.check(<-done)
	r.check(sw.Close())
	byID := map[uint16][][]byte{}
	for _, s := range out {
		id := packet.IPv4(s.frame[packet.EthernetLen:]).ID()
		byID[id] = append(byID[id], s.frame)
	}
	if len(byID) != count {
		t.Errorf("fragments of %d datagrams left, want %d; drops %v", len(byID), count, sw.Drops())
	}
	for id, parts := range byID {
		joined := packettest.Join(parts)
		l := packet.ParseLayers(joined)
		if joined == nil || !l.L4Valid(joined) {
			t.Errorf("datagram %d left as %d fragments, or damaged", id, len(parts))
		}
	}
	wantNothingWaits(t, r)
}
