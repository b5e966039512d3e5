package conntrack

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
)

func TestLimits(t *testing.T) { // CT-37, D9
	b := newBench(t, Config{})
	b.SetLimit(100, 2)
	for port := range uint16(2) {
		b.want(udpFrame(client, server, 1+port, 53), commit, "new|trk")
	}
	b.want(udpFrame(client, server, 3, 53), commit, "new|trk")
	if b.verdict.Drop != DropZoneFull {
		t.Errorf("verdict %+v, want DropZoneFull", b.verdict)
	}
	b.want(udpFrame(client, server, 3, 53), Request{Zone: 5, Commit: true}, "new|trk")
	if b.verdict.Drop != DropNone {
		t.Errorf("another zone: verdict %+v", b.verdict)
	}
	b.want(udpFrame(server, client, 53, 1), commit, "est|rpl|trk")
	if _, zones := b.Limits(); !slices.Equal(zones, []ZoneLimit{{100, 2, 2}}) {
		t.Errorf("limits %+v", zones)
	}
	b.DelLimit(100)
	b.want(udpFrame(client, server, 3, 53), commit, "new|trk")
	b.SetDefaultLimit(3)
	b.want(udpFrame(client, server, 4, 53), commit, "new|trk")
	if b.verdict.Drop != DropZoneFull || b.ZoneCount(100) != 3 {
		t.Errorf("default limit: verdict %+v, count %d", b.verdict, b.ZoneCount(100))
	}
	b.SetLimit(7, 0)
	b.want(udpFrame(client, server, 4, 53), Request{Zone: 7, Commit: true}, "new|trk")
	if b.verdict.Drop != DropZoneFull {
		t.Errorf("a limit of 0 lets nothing in: verdict %+v", b.verdict)
	}
}

func TestTableFull(t *testing.T) { // CT-37, D9; expired connections make room
	b := newBench(t, Config{Max: 2})
	b.want(udpFrame(client, server, 1, 53), commit, "new|trk")
	b.want(udpFrame(client, server, 2, 53), commit, "new|trk")
	b.want(udpFrame(client, server, 3, 53), commit, "new|trk")
	if b.verdict.Drop != DropTableFull {
		t.Errorf("verdict %+v, want DropTableFull", b.verdict)
	}
	b.warp(31 * time.Second)
	b.want(udpFrame(client, server, 3, 53), commit, "new|trk")
	if s := b.Stats(); b.verdict.Drop != DropNone || s.Entries != 1 || s.Expired != 2 || s.Drops[DropTableFull] != 1 {
		t.Errorf("verdict %+v stats %+v", b.verdict, s)
	}
}

func TestSetMax(t *testing.T) {
	b := newBench(t, Config{Max: 1, Capacity: 5000})
	b.want(udpFrame(client, server, 1, 53), commit, "new|trk")
	b.SetMax(5000)
	const fit = 4750 // from one port, before it pays for its own
	for port := range uint16(fit - 1) {
		b.want(udpFrame(client, server, 2+port, 53), commit, "new|trk")
	}
	b.want(udpFrame(server, client, 53, 1), lookup, "est|rpl|trk")
	b.want(udpFrame(server, client, 53, fit), lookup, "est|rpl|trk")
	if s := b.Stats(); s.Entries != fit || s.Max != 5000 || b.Max() != 5000 {
		t.Errorf("stats %+v", s)
	}
	b.SetMax(6000)
	if b.Max() != 5000 {
		t.Errorf("the limit is %d, more than there is room for", b.Max())
	}
	if n := len(b.lines()); n != fit {
		t.Errorf("the dump has %d lines", n)
	}
	b.Flush()
	if s := b.Stats(); s.Entries != 0 || len(b.lines()) != 0 {
		t.Errorf("after a flush: %+v", s)
	}
}

func TestSweep(t *testing.T) { // CT-40
	b := newBench(t, Config{})
	const n = 3000
	for port := range uint16(n) {
		b.want(udpFrame(client, server, 1+port, 53), commit, "new|trk")
	}
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "S"}), commit, "new|trk")
	b.want(tcpFrame(server, client, 80, 1, tcpText{flags: "SA", ack: 1}), commit, "est|rpl|trk")
	b.warp(31 * time.Second)
	b.Sweep(b.now)
	if s := b.Stats(); s.Entries != 1 || s.Expired != n {
		t.Errorf("after the sweep: %+v", s)
	}
	// The slots are used again.
	before := b.arena.End()
	for port := range uint16(n) {
		b.want(udpFrame(client, server, 1+port, 53), commit, "new|trk")
	}
	if top := b.arena.End(); top != before {
		t.Errorf("the arena grew from %d to %d slots", before, top)
	}
}

func TestScratch(t *testing.T) {
	b := newBench(t, Config{})
	syn := tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000})
	r := commitNAT("dst=10.0.0.2:8080")
	r.Mark, r.MarkMask = 7, 7
	b.want(syn, r, "new|trk|dnat")
	before := b.lines()

	// A second bench over a Scratch of the first one's table.
	s := newBench(t, Config{})
	s.Table = b.Scratch()
	s.want(tcpFrame(server, client, 8080, 1234, tcpText{flags: "SA", seq: 5000, ack: 1001}), unNAT, "est|rpl|trk|snat")
	if s.meta.Mark != 7 {
		t.Errorf("the scratch saw mark %d", s.meta.Mark)
	}
	s.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 5001}), unNAT, "est|trk|dnat")
	s.want(tcpFrame(server, client, 8080, 1234, tcpText{flags: "R", seq: 5001}), unNAT, "est|rpl|trk|snat")
	s.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 9}), unNAT, "new|trk") // over, and not adopted again
	s.want(udpFrame(client, server, 1, 2), commit, "new|trk")
	b.wantDump(before...)

	// NAT chooses on the scratch what it then chooses on the table, and
	// respects what the table holds.
	clash := tcpFrame(client, "10.96.0.11", 1234, 80, tcpText{flags: "S", seq: 1000})
	s.Table = b.Scratch()
	s.want(clash, r, "new|trk|dnat")
	traced := s.tuple()
	b.want(clash, r, "new|trk|dnat")
	b.wantTuple(traced)
	b.wantTuple("src=10.0.0.1,dst=10.0.0.2,sport=1235,dport=8080")
}

func TestScratchCountsLimits(t *testing.T) {
	b := newBench(t, Config{})
	b.SetLimit(100, 1)
	b.want(udpFrame(client, server, 1, 53), commit, "new|trk")
	s := newBench(t, Config{})
	s.Table = b.Scratch()
	s.want(udpFrame(server, client, 53, 1), commit, "est|rpl|trk")
	s.want(udpFrame(client, server, 2, 53), commit, "new|trk")
	if s.verdict.Drop != DropZoneFull {
		t.Errorf("verdict %+v, want DropZoneFull", s.verdict)
	}
}

func TestDumpText(t *testing.T) {
	addr := netip.MustParseAddr
	udp := Conn{
		Zone:  9,
		Orig:  Direction{Tuple: Tuple{addr("fd00::1"), addr("fd00::2"), packet.ProtoUDP, 1, 2}},
		Reply: Direction{Tuple: Tuple{addr("fd00::2"), addr("fd00::1"), packet.ProtoUDP, 2, 1}},
	}
	labelled := udp
	labelled.Zone, labelled.Mark, labelled.Label = 0, 255, Label{Hi: 1, Lo: 0xab}
	sctp := udp
	sctp.Orig.Proto, sctp.State, sctp.Tags = packet.ProtoSCTP, "ESTABLISHED", [2]uint32{3, 4}
	const tuples = ",orig=(src=fd00::1,dst=fd00::2,sport=1,dport=2),reply=(src=fd00::2,dst=fd00::1,sport=2,dport=1)"
	for _, test := range []struct {
		c    Conn
		want string
	}{
		{udp, "udp" + tuples + ",zone=9"},
		{labelled, "udp" + tuples + ",mark=255,labels=0x100000000000000ab"},
		{sctp, "sctp" + tuples + ",zone=9,protoinfo=(state=ESTABLISHED,vtag_orig=3,vtag_reply=4)"},
	} {
		if got := test.c.String(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

func TestDumpFilter(t *testing.T) {
	b := newBench(t, Config{})
	for zone := range uint16(3) {
		b.want(udpFrame(client, server, 1, 53), Request{Zone: zone, Commit: true}, "new|trk")
	}
	zone, n := uint16(1), 0
	for c := range b.Dump(Filter{Zone: &zone}) {
		n++
		if c.Zone != 1 {
			t.Errorf("zone %d in the dump of zone 1", c.Zone)
		}
	}
	if n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	for range b.Dump(Filter{}) {
		break // ends early without holding the lock
	}
	b.Flush()
}

func TestConcurrentUse(t *testing.T) {
	table := NewTable(Config{Max: 1 << 12})
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			w := &bench{TB: t, Table: table, frame: packet.NewFrame(make([]byte, 2048), nil)}
			from := fmt.Sprintf("10.1.%d.1", worker)
			for i := range 500 {
				port := uint16(2000 + i%100)
				w.enter(udpFrame(from, server, port, 53))
				w.ct(commitNAT("src=10.9.9.9"))
				w.enter(udpFrame(server, "10.9.9.9", 53, w.sport()))
				if w.ct(unNAT) != "est|rpl|trk|dnat" {
					t.Errorf("worker %d: reply is %s", worker, stateText(w.meta.State))
				}
				if i%100 == 0 {
					table.Sweep(table.clock())
					for range table.Dump(Filter{}) {
					}
				}
			}
		})
	}
	all.Wait()
	if n := table.Stats().Entries; n != 400 {
		t.Errorf("%d connections, want 400", n)
	}
}
