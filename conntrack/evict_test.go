package conntrack

import (
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
)

// from is a request of a port.
func from(r Request, port uint32) Request {
	r.InPort = port
	return r
}

// beginConnections makes n connections of a port, of client addresses 10.PORT.x.y, in zone
// 100, answered or not.
func (b *bench) beginConnections(port uint32, n int, answered bool) {
	b.Helper()
	for i := range n {
		b.beginOne(port, uint16(1+i))
		if b.verdict.Drop != DropNone {
			b.Fatalf("connection %d of port %d: %v", i, port, b.verdict.Drop)
		}
		if answered {
			b.want(udpFrame(server, clientOf(port), 53, uint16(1+i)), lookup, "est|rpl|trk")
		}
	}
}

func (b *bench) beginOne(port uint32, sport uint16) {
	b.Helper()
	b.want(udpFrame(clientOf(port), server, sport, 53), from(commit, port), "new|trk")
}

func clientOf(port uint32) string { return "10.1.0." + string(rune('0'+port)) }

// holdsConnection says whether a connection that begin made is there.
func (b *bench) holdsConnection(port uint32, sport uint16) bool {
	b.enter(udpFrame(clientOf(port), server, sport, 53))
	b.ct(lookup)
	return b.meta.at.Slot != 0
}

// held is how many connections a port holds.
func (b *bench) held(port uint32) int { return int(b.shares.ofPort(b.Table, port).count.Load()) }

func TestEarlyDropTakesFromTheLargest(t *testing.T) { // CT-38
	b := newBench(t, Config{Max: 1000, NewRate: -1})
	b.beginConnections(1, 100, true)
	b.beginConnections(2, 50, false)
	b.beginConnections(3, 5000, false)
	if b.held(1) != 100 || b.held(2) != 50 || b.held(3) != 800 {
		t.Errorf("ports hold %d, %d and %d", b.held(1), b.held(2), b.held(3))
	}
	if s := b.Stats(); s.Entries != 950 || s.EarlyDropped != 4200 || s.Drops != [numDropReasons]uint64{} {
		t.Errorf("stats %+v", s)
	}
	for i := range uint16(100) {
		if !b.holdsConnection(1, 1+i) {
			t.Fatalf("answered connection %d is gone", i)
		}
	}
	// The oldest went, the newest are there.
	for sport, want := range map[uint16]bool{1: false, 4200: false, 4201: true, 5000: true} {
		if b.holdsConnection(3, sport) != want {
			t.Errorf("connection %d of the flood: %v, want %v", sport, !want, want)
		}
	}
	b.beginConnections(4, 1, false) // a newcomer finds room
	b.checkShares()
}

// TestAnsweredConnectionsStay: a port within its fair share keeps its answered connections.
func TestAnsweredConnectionsStay(t *testing.T) { // CT-38
	b := newBench(t, Config{Max: 100, NewRate: -1})
	for port := range uint32(4) {
		b.beginConnections(1+port, 10, true)
	}
	b.beginConnections(5, 1000, false)
	for port := range uint32(4) {
		if b.held(1+port) != 10 || b.Ports()[port].Evicted != 0 {
			t.Errorf("port %d: %+v", 1+port, b.Ports()[port])
		}
	}
}

// TestThePoorArePreserved: a port that holds many connections cannot evict a new one of a
// port that holds few. Its own connections are evicted first.
func TestThePoorArePreserved(t *testing.T) {
	b := newBench(t, Config{Max: 100, NewRate: -1})
	b.beginConnections(1, 10, false)
	b.beginConnections(2, 90, true)
	b.warp(5 * time.Second)
	b.beginOne(2, 1000)
	if b.verdict.Drop != DropNone || b.held(1) != 10 {
		t.Errorf("verdict %+v, port 1 holds %d", b.verdict, b.held(1))
	}
	b.beginOne(1, 1000)
	if b.verdict.Drop != DropNone || b.held(1) != 11 {
		t.Errorf("verdict %+v, port 1 holds %d", b.verdict, b.held(1))
	}
}

// TestTimeToBeAnswered: a port within its fair share gives up none that is
// younger than a second.
func TestTimeToBeAnswered(t *testing.T) {
	b := newBench(t, Config{Max: 10, NewRate: -1})
	b.beginConnections(1, 10, false)
	b.beginOne(1, 100)
	if b.verdict.Drop != DropTableFull {
		t.Errorf("at once: verdict %+v", b.verdict)
	}
	b.warp(answerTime + time.Millisecond)
	b.beginOne(1, 100)
	if b.verdict.Drop != DropNone || b.holdsConnection(1, 1) || !b.holdsConnection(1, 2) {
		t.Errorf("a second later: verdict %+v", b.verdict)
	}
}

func TestClosedConnectionsMakeRoom(t *testing.T) { // CT-38
	b := newBench(t, Config{Max: 1})
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "S", seq: 1}), commit, "new|trk")
	b.want(tcpFrame(server, client, 80, 1, tcpText{flags: "SA", seq: 9, ack: 2}), lookup, "est|rpl|trk")
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "A", seq: 2, ack: 10}), lookup, "est|trk")
	b.warp(2 * time.Second)
	b.beginOne(2, 9)
	if b.verdict.Drop != DropTableFull {
		t.Errorf("verdict %+v", b.verdict)
	}
	b.want(tcpFrame(client, server, 1, 80, tcpText{flags: "R", seq: 2}), lookup, "est|trk")
	b.warp(2 * time.Second)
	b.beginOne(2, 9)
	if b.verdict.Drop != DropNone || b.Stats().EarlyDropped != 1 {
		t.Errorf("verdict %+v, stats %+v", b.verdict, b.Stats())
	}
	b.checkShares()
}

func TestZoneMakesRoomInItself(t *testing.T) { // CT-37, CT-38
	b := newBench(t, Config{NewRate: -1})
	b.SetLimit(5, 3)
	b.beginConnections(1, 3, false) // zone 100, older
	for i := range uint16(3) {
		b.want(udpFrame(client, server, 1+i, 53), Request{Zone: 5, Commit: true, InPort: 1}, "new|trk")
	}
	b.warp(2 * time.Second)
	b.want(udpFrame(client, server, 9, 53), Request{Zone: 5, Commit: true, InPort: 1}, "new|trk")
	if b.verdict.Drop != DropNone || b.ZoneCount(5) != 3 || b.ZoneCount(100) != 3 {
		t.Errorf("verdict %+v, zone 5 holds %d, zone 100 %d", b.verdict, b.ZoneCount(5), b.ZoneCount(100))
	}
	b.want(udpFrame(client, server, 1, 53), Request{Zone: 5}, "new|trk") // it was the oldest
	if b.meta.at.Slot != 0 {
		t.Error("the zone's oldest is still there")
	}
}

// TestVictimIsLive: the oldest in a port's list may be one that another worker is
// just making; the next one goes then.
func TestVictimIsLive(t *testing.T) {
	b := newBench(t, Config{Max: 100, NewRate: -1})
	slot := b.arena.Alloc()
	s := b.shares.ofPort(b.Table, 1)
	s.move(b.arena, slot, unlisted, spare, b.now)
	b.beginConnections(1, 10, false)
	h, ok := b.pick(s, spare, anyZone, 0, b.now+int64(time.Minute))
	if !ok || h.Slot == slot || !store.Live(uint64(h.Gen)) {
		t.Errorf("victim %+v, %v; slot %d is not live", h, ok, slot)
	}
}

// TestScratchSeesEviction: a trace says that a packet passes where its
// connection would take another's place, and evicts none.
func TestScratchSeesEviction(t *testing.T) {
	b := newBench(t, Config{Max: 10, NewRate: -1})
	b.beginConnections(1, 10, false)
	b.warp(2 * time.Second)
	s := newBench(t, Config{})
	s.Table, s.now = b.Scratch(), b.now
	s.beginOne(2, 1)
	if s.verdict.Drop != DropNone || b.Stats().Entries != 10 || b.Stats().EarlyDropped != 0 {
		t.Errorf("verdict %+v, stats %+v", s.verdict, b.Stats())
	}
}

// TestScratchKeepsItsCopies: nearly full, a table gives up an old connection;
// its Scratch must not give up those that the traced packet belongs to.
func TestScratchKeepsItsCopies(t *testing.T) {
	b := newBench(t, Config{Max: 100, NewRate: -1})
	b.beginConnections(1, 97, false)
	b.warp(2 * time.Second)
	s := newBench(t, Config{})
	s.Table, s.now = b.Scratch(), b.now
	if !s.holdsConnection(1, 97) {
		t.Error("the connection is not found")
	}
	s.beginOne(1, 1000)
	if n := s.Stats().EarlyDropped; n != 0 || !s.holdsConnection(1, 97) {
		t.Errorf("%d of the copies given up", n)
	}
}

func TestNewRate(t *testing.T) { // CT-39
	b := newBench(t, Config{NewRate: 10})
	b.beginConnections(1, 20, false)
	b.beginOne(1, 100)
	if b.verdict.Drop != DropNewRate || b.Stats().Drops[DropNewRate] != 1 {
		t.Errorf("verdict %+v", b.verdict)
	}
	b.want(udpFrame(server, clientOf(1), 53, 1), lookup, "est|rpl|trk") // what exists goes on
	b.beginConnections(2, 20, false)                                    // and so do other ports
	b.warp(100 * time.Millisecond)
	b.beginOne(1, 100)
	if b.verdict.Drop != DropNone {
		t.Errorf("after a tenth of a second: %+v", b.verdict)
	}
	b.beginOne(1, 101)
	if b.verdict.Drop != DropNewRate {
		t.Errorf("a second one after a tenth of a second: %+v", b.verdict)
	}
	b.SetNewRate(-1)
	for sport := range uint16(500) {
		if b.beginOne(1, 200+sport); b.verdict.Drop != DropNone {
			t.Fatalf("without limit: %+v", b.verdict)
		}
	}
}

// TestOneTokenAPacket: a packet that is committed in several zones begins one
// connection.
func TestOneTokenAPacket(t *testing.T) {
	b := newBench(t, Config{NewRate: 1})
	for i := range uint16(2) {
		b.enter(udpFrame(client, server, 1+i, 53))
		for zone := range uint16(5) {
			if b.ct(Request{Zone: zone, Commit: true}); b.verdict.Drop != DropNone {
				t.Fatalf("packet %d in zone %d: %+v", i, zone, b.verdict)
			}
		}
	}
}

// TestPortNumbers: ports of any number have shares; those above 16 bits one
// together.
func TestPortNumbers(t *testing.T) {
	b := newBench(t, Config{})
	for i, port := range []uint32{0, 255, 256, 65534, 65535, 65536, 0xfffffffe} {
		b.want(udpFrame(client, server, uint16(1+i), 53), from(commit, port), "new|trk")
		if want := max(1, i-3); b.held(port) != want {
			t.Errorf("port %d holds %d, want %d", port, b.held(port), want)
		}
	}
	b.checkShares()
}

// BenchmarkTableFull is a packet that would begin a connection when a million
// answered ones leave no room, and 256 ports hold them.
func BenchmarkTableFull(b *testing.B) {
	const n = 1_000_000
	w := newBench(b, Config{Max: n, NewRate: -1})
	w.fillUDP(n * 95 / 100)
	w.answerAll()
	w.shares.ofPort(w.Table, 0).lists[answered] = store.List{} // as if none of them might go
	for port := range uint32(256) {
		w.shares.ofPort(w.Table, port)
	}
	w.enter(udpFrame(clientOf(1), server, 1, 53))
	b.ReportAllocs()
	for b.Loop() {
		w.meta = Meta{}
		if v := w.Track(w.frame, &w.layers, &w.meta, &commit, w.now); v.Drop != DropPortShare {
			b.Fatalf("%+v", v)
		}
	}
}

// answerAll answers all connections, as fast as it can.
func (b *bench) answerAll() {
	b.each(func(_ *store.Entry, h store.Handle) {
		c := b.arena.At(h.Slot)
		c.LockIf(h.Gen)
		var e store.Entry
		c.Load(&e)
		e.Flags |= proto.Replied
		e.Expires = b.now + int64(b.machine.Timeouts.UDPReplied)
		b.relist(&e, h.Slot, b.now)
		c.Store(&e)
		c.Unlock(h.Gen)
	})
}

// BenchmarkEvictAnswered is packets whose connections take the places of answered ones.
func BenchmarkEvictAnswered(b *testing.B) {
	const n = 1_000_000
	w := newBench(b, Config{Max: n, NewRate: -1})
	w.fillUDP(n * 95 / 100)
	w.answerAll()
	other := from(commit, 2)
	b.ReportAllocs()
	b.ResetTimer()
	w.fillFrom(0x0b000000, b.N, &other)
	if evicted := w.Stats().EarlyDropped; evicted != uint64(b.N) {
		b.Fatalf("%d connections evicted for %d", evicted, b.N)
	}
}

// BenchmarkEvict is packets whose connections take others' places in a table of
// a million.
func BenchmarkEvict(b *testing.B) {
	const n = 1_000_000
	w := newBench(b, Config{Max: n, NewRate: -1})
	w.fillUDP(n)
	w.warp(2 * time.Second)
	before := w.Stats().EarlyDropped
	b.ReportAllocs()
	b.ResetTimer()
	w.fillFrom(0x0b000000, b.N, &commit)
	if evicted := w.Stats().EarlyDropped - before; evicted != uint64(b.N) {
		b.Fatalf("%d connections evicted for %d", evicted, b.N)
	}
}
