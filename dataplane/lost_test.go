package dataplane_test

import (
	"fmt"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
)

// dropRing is the packets dropped since it was last called, one a line.
func (r *rig) droppedPackets() (lines []string) {
	all, missed := r.sw.DroppedPackets()
	for _, p := range all {
		entry := "none"
		if p.Entry != nil {
			entry = p.Entry.Text(flow.Format{})
		}
		lines = append(lines, fmt.Sprintf("lost at %d from port %d: %s in table %d by %s, %+v, %+v, %d bytes: %x",
			p.At, p.Port, p.Reason, p.Table, entry, p.CT, p.Tunnel, p.Length, p.Frame()))
	}
	return append(lines, fmt.Sprintf("missed %d", missed))
}

// wantDropped checks what was noted of a case's packet, the last one that was dropped.
func wantDropped(t *testing.T, r *rig, c *dropCase) {
	t.Helper()
	all, _ := r.sw.DroppedPackets()
	var last *telemetry.DroppedPacket
	for i := range all {
		if all[i].Reason == c.reason {
			last = &all[i]
		}
	}
	if last == nil {
		t.Fatalf("the packet is not among the %d that were noted", len(all))
	}
	if last.Port != 1 || last.At != *r.now && c.reason != telemetry.DropFragExpired {
		t.Errorf("noted: port %d at %d, want port 1 at %d", last.Port, last.At, *r.now)
	}
	if where := fmt.Sprintf("in %d", last.Table); where != c.want && c.reason != telemetry.DropNoPipeline {
		t.Errorf("noted: %s, want %s", where, c.want)
	}
	if last.Entry != nil && last.Entry.Table != last.Table {
		t.Errorf("noted: table %d, and an entry of table %d", last.Table, last.Entry.Table)
	}
	if n := min(len(c.frame), telemetry.DroppedBytes); last.Length != len(c.frame) || len(last.Frame()) != n {
		t.Errorf("noted: %d bytes of %d, want %d of %d", len(last.Frame()), last.Length, n, len(c.frame))
	}
	noEntry := !c.reason.InTable() || c.reason == telemetry.DropTableMiss || c.reason == telemetry.DropBadOffload || c.reason == telemetry.DropSegments
	if (last.Entry == nil) != noEntry {
		t.Errorf("noted: entry %v", last.Entry)
	}
}

// TestDropNamesTheEntry: the entry is the one at which the packet was dropped, not
// one that was met on the way, also where tables are called and come back.
func TestDropNamesTheEntry(t *testing.T) {
	for _, c := range []struct{ name, flows, want string }{
		{"called table says nothing", "table=1,priority=7 actions=resubmit(,2)\ntable=2,priority=5 actions=set_field:1->reg0", "table=2, priority=5"},
		{"behind a call", "table=1,priority=7 actions=resubmit(,2),output:50\ntable=2,priority=5 actions=set_field:1->reg0", "table=1, priority=7"},
		{"miss behind a match", "table=1,priority=7 actions=goto_table:2\ntable=2,arp actions=drop", ""},
		{"behind ct", "table=1,priority=7,ip actions=ct(table=2,zone=5)\ntable=2,priority=6,ct_state=+trk,ip actions=drop", "table=2, priority=6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.flows)
			for range 4 { // walked, remembered, replayed
				r.send(anyTCP)
			}
			all, _ := r.sw.DroppedPackets()
			if len(all) != 4 {
				t.Fatalf("%d packets noted, want 4", len(all))
			}
			for i, p := range all {
				got := ""
				if p.Entry != nil {
					got = fmt.Sprintf("table=%d, priority=%d", p.Entry.Table, p.Entry.Priority)
				}
				if got != c.want {
					t.Errorf("packet %d: lost at %q, want %q", i, got, c.want)
				}
			}
		})
	}
}

// TestDropRingIsBounded: a port that floods fills a quarter of a ring and no
// more, so that others' packets are noted still; what is missed is counted, and
// after a reading there is room again.
func TestDropRingIsBounded(t *testing.T) {
	r := newRig(t, "table=0 actions=drop")
	flood := func(from uint32, n int) {
		for range n {
			r.send(fmt.Sprintf("in_port=%d,udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,udp_src=1,udp_dst=2", from))
		}
	}
	flood(1, 1000)
	flood(2, 1)
	all, missed := r.sw.DroppedPackets()
	by := map[uint32]int{}
	for _, p := range all {
		by[p.Port]++
	}
	if by[1] != 256 || by[2] != 1 || missed != 744 {
		t.Errorf("noted %v and missed %d, want 256 and 1 by port, and 744", by, missed)
	}
	flood(1, 3)
	if all, missed = r.sw.DroppedPackets(); len(all) != 3 || missed != 744 {
		t.Errorf("after a reading: %d noted and %d missed, want 3 and 744", len(all), missed)
	}
	if n := r.sw.Drops()[telemetry.DropByEntry]; n != 1004 {
		t.Errorf("%d drops are counted, want 1004", n)
	}
}

// newLosing is a rig that drops all, and a batch of packets for it.
func newLosing(t testing.TB) (pass func(), read func()) {
	r := newRig(t, "table=0,priority=9,in_port=1 actions=goto_table:1\ntable=1 actions=drop")
	r.ports[1] = memory.New("p1", memory.Options{})
	r.check(r.sw.RemovePort(1))
	r.check(r.sw.AddPort(1, r.ports[1]))
	pool, batch := packet.NewPool(64, 2048), make([]*packet.Frame, 64)
	_, frame := r.compose(anyTCP)
	pass = func() {
		if pool.Get(batch) != len(batch) {
			t.Fatal("frames did not come back")
		}
		for _, f := range batch {
			f.SetBytes(frame)
		}
		r.ports[1].Inject(batch...)
		r.sw.Poll()
	}
	return pass, func() { r.sw.DroppedPackets() }
}

// TestLosingAllocatesNothing asserts zero allocations for a packet that is
// lost, with room in the ring and without.
func TestLosingAllocatesNothing(t *testing.T) {
	pass, read := newLosing(t)
	if n := testing.AllocsPerRun(3, pass); n != 0 {
		t.Errorf("%v allocations for 64 packets that are noted", n)
	}
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("%v allocations for 64 packets that are not", n)
	}
	read()
	if n := testing.AllocsPerRun(2, pass); n != 0 {
		t.Errorf("%v allocations for 64 packets that are noted after a reading", n)
	}
}

// BenchmarkLosing is a packet that is dropped, in batches of 64, while nobody
// reads; the figure is per packet.
func BenchmarkLosing(b *testing.B) {
	pass, _ := newLosing(b)
	b.ReportAllocs()
	for n := 0; n < b.N; n += 64 {
		pass()
	}
}

// BenchmarkLosingAndReading is the same, and each batch is read.
func BenchmarkLosingAndReading(b *testing.B) {
	pass, read := newLosing(b)
	for n := 0; n < b.N; n += 64 {
		pass()
		read()
	}
}

// TestDropAsItWasCut: what is lost of a packet that took a remembered way says
// nothing of the connection of the packet that walked before it.
func TestDropAsItWasCut(t *testing.T) {
	r := newRig(t, `
		table=0,priority=9,in_port=2,ip actions=ct(commit,zone=9,exec(load:0x7->NXM_NX_CT_MARK[]),table=1)
		table=0,priority=1,ip actions=output:7
		table=1 actions=output:4`)
	r.addPort(7, memory.Options{Queue: 4096})
	cut := func() {
		if r.ports[1].Inject(large(packettest.TCP4)) == 0 {
			t.Fatal("the port takes no more frames")
		}
		r.sw.Poll()
	}
	for range 3 { // walked, remembered, replayed
		cut()
	}
	_, other := r.compose("udp,nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_ttl=64,udp_src=1,udp_dst=2")
	f := packet.NewFrame(make([]byte, 2048), nil)
	f.SetBytes(other)
	r.ports[2].Inject(f)
	r.sw.Poll()
	for r.sw.Drops()[telemetry.DropNoFrame] == 0 {
		cut()
	}
	all, _ := r.sw.DroppedPackets()
	if len(all) == 0 {
		t.Fatal("nothing is noted")
	}
	for _, p := range all {
		if p.CT != (telemetry.DroppedCT{}) || p.Port != 1 || p.Reason != telemetry.DropNoFrame {
			t.Errorf("noted %+v of port %d, %s: it met no ct()", p.CT, p.Port, p.Reason)
		}
	}
}
