package conntrack

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// tcpSides is an established connection, and a passer of each direction.
func tcpSides(t testing.TB, table *Table, port uint16, now int64) (sides [2]*passer) {
	b := benchOf(t, table)
	b.now = now
	b.want(tcpFrame(client, server, port, 80, tcpText{flags: "S", seq: 1000}), commit, "new|trk")
	b.want(tcpFrame(server, client, 80, port, tcpText{flags: "SA", seq: 5000, ack: 1001}), lookup, "est|rpl|trk")
	for dir := range sides {
		sides[dir] = newPasser(t, table, sideSegment(port, dir, 0, 0, 0), now)
	}
	return sides
}

// turns is what a turn with the lock of a cell adds to its head.
const turns = store.Locked << 1

// sideSegment is a segment of a connection of tcpSides, of length bytes. at and acked are
// offsets from the first byte of its own side and of the other one.
func sideSegment(port uint16, dir int, at, acked uint32, length int) []byte {
	x := tcpText{flags: "A", seq: 1001 + at, ack: 5001 + acked, length: length}
	if dir == tuple.Original {
		return tcpFrame(client, server, port, 80, x)
	}
	x.seq, x.ack = 5001+at, 1001+acked
	return tcpFrame(server, client, 80, port, x)
}

// shows gives the passer another packet.
func (p *passer) shows(frame []byte) {
	p.bytes = frame
	p.enter(frame)
	if !p.read.Read(p.frame, &p.layers) {
		p.Fatal("a packet that cannot pass")
	}
}

// TestSegmentsTakeNoTurn: no worker locks a connection for segments that change only
// sequence state and expiry, whether they pass or are tracked. A segment that offers a
// larger window, or ends its side, takes the lock.
func TestSegmentsTakeNoTurn(t *testing.T) {
	b := newBench(t, Config{})
	sides := tcpSides(t, b.Table, 7, 1)
	c := b.arena.At(sides[tuple.Original].seen.at.Slot)
	head := c.Head()
	for dir, p := range sides {
		p.shows(sideSegment(7, dir, 0, 0, 100))
		if now := int64(10 * (dir + 1)); !p.pass(now) || c.Expires() != now+int64(b.machine.Timeouts.TCPEstablished) {
			t.Errorf("a segment passed at %d, and the connection ends at %d", now, c.Expires())
		}
		p.shows(sideSegment(7, dir, 100, 0, 100))
		now := int64(10*(dir+1) + 1)
		if p.track(lookup, now); p.meta.State&Established == 0 || c.Expires() != now+int64(b.machine.Timeouts.TCPEstablished) {
			t.Errorf("a segment was tracked at %d as %+v, and the connection ends at %d", now, p.meta, c.Expires())
		}
		if p.ct(lookup); p.meta.State&Established == 0 {
			t.Errorf("a segment that met its connection twice is %+v", p.meta)
		}
		if next := uint32(c.Sequence(dir)); next != 1201+uint32(4000*dir) {
			t.Errorf("after 200 bytes the next number is %d", next)
		}
	}
	if c.Head() != head {
		t.Errorf("the head went from %x to %x", head, c.Head())
	}
	p := sides[tuple.Reply]
	p.shows(tcpFrame(server, client, 80, 7, tcpText{flags: "A", seq: 5201, ack: 1201, window: 9000}))
	if !p.pass(30) || c.Head() != head+turns {
		t.Errorf("with a larger window the head went from %x to %x", head, c.Head())
	}
	p.bytes = tcpFrame(server, client, 80, 7, tcpText{flags: "FA", seq: 5201, ack: 1201})
	if p.track(lookup, 31); c.Head() != head+2*turns {
		t.Errorf("with a FIN the head went from %x to %x", head, c.Head())
	}
}

// TestSegmentsOfManyWorkers: two workers for each direction pass or track segments, out of
// order. Some segments have a mark or a larger window, which take the lock. In the end each
// side is as far as its furthest segment, and no segment was outside the window.
func TestSegmentsOfManyWorkers(t *testing.T) {
	b := newBench(t, Config{})
	var passed, tracked int
	for port := range uint16(100) {
		at := tcpSides(t, b.Table, port+1, 1)[tuple.Original].seen.at
		var of [4]sending
		var wait sync.WaitGroup
		for i := range of {
			wait.Go(func() { of[i].run(newPasser(t, b.Table, sideSegment(port+1, i%2, 0, 0, 0), 1), port+1, i%2) })
		}
		wait.Wait()
		for dir := range 2 {
			k, one, other := b.arena.At(at.Slot).Sequence(dir), &of[dir], &of[dir+2]
			if next, limit := max(one.next, other.next), max(one.limit, other.limit); uint32(k) != next || uint32(k>>32) != limit {
				t.Fatalf("direction %d has come to %d and granted up to %d, its segments to %d and %d", dir, uint32(k), k>>32, next, limit)
			}
			passed, tracked = passed+one.passed+other.passed, tracked+one.tracked+other.tracked
		}
	}
	if n := b.counts.outOfWindow.Load(); n != 0 {
		t.Errorf("%d segments were outside the window", n)
	}
	t.Logf("%d segments passed, %d were tracked", passed, tracked)
	if passed == 0 || tracked == 0 {
		t.Error("nothing was tried")
	}
}

// sending is how far the segments of a worker were, and what became of them.
type sending struct {
	next, limit     uint32
	passed, tracked int
}

// run sends segments.
func (s *sending) run(p *passer, port uint16, dir int) {
	for i := range uint32(300) {
		x := tcpText{
			flags: "A", seq: 1001 + 20*i + rand.Uint32N(500), ack: 5001 + 20*i + rand.Uint32N(500),
			length: 1 + rand.IntN(100), window: 8192 + uint16(rand.Uint32N(8)/7*i),
		}
		frame := tcpFrame(client, server, port, 80, x)
		if dir == tuple.Reply {
			x.seq, x.ack = x.seq+4000, x.ack-4000
			frame = tcpFrame(server, client, 80, port, x)
		}
		p.shows(frame)
		how := lookup
		if rand.IntN(8) == 0 {
			how.Mark, how.MarkMask = rand.Uint32(), 1<<32-1
		}
		switch {
		case how.MarkMask == 0 && p.pass(2):
			s.passed++
		default:
			p.track(how, 2)
			s.tracked++
		}
		s.next, s.limit = max(s.next, x.seq+uint32(x.length)), max(s.limit, x.ack+uint32(x.window))
	}
}

// TestTwoSegmentsAtOnce: of two segments of a direction one is further, and the other
// grants more. They pass or are tracked, with the lock or without. The connection has the
// larger number of each.
func TestTwoSegmentsAtOnce(t *testing.T) {
	b := newBench(t, Config{})
	var one, other *passer
	var at uint32
	races(func(i int) {
		if at = uint32(i%500) * 10; at == 0 {
			b.Flush()
			one = tcpSides(t, b.Table, 7, 1)[tuple.Original]
			other = newPasser(t, b.Table, one.bytes, 1)
		}
		one.shows(sideSegment(7, tuple.Original, at, 0, 10))
		other.shows(sideSegment(7, tuple.Original, 0, at, 0))
	}, func(i int) {
		if i&1 == 0 || !one.pass(2) {
			one.track(lookup, 2)
		}
	}, func(i int) {
		if i&2 == 0 || !other.pass(2) {
			other.track(Request{Zone: lookup.Zone, LabelMask: Label{Hi: uint64(i & 4)}}, 2)
		}
	}, func(int) {
		next, limit := uint32(1001+at+10), uint32(5001+at+8192)
		if k := b.arena.At(one.seen.at.Slot).Sequence(0); uint32(k) != next || uint32(k>>32) != limit {
			t.Errorf("the connection is at %d, %d, its segments at %d, %d", uint32(k), k>>32, next, limit)
		}
	})
}

// TestTranslatedOfAnother: a translated packet finds its connection's successor by the
// reversed tuple, and advances its own direction there.
func TestTranslatedOfAnother(t *testing.T) {
	b := newBench(t, Config{})
	open := func() {
		b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "S", seq: 1000}), commitNAT("dst=10.0.0.2:8080"), "new|trk|dnat")
		b.want(tcpFrame(server, client, 8080, 1234, tcpText{flags: "SA", seq: 1010, ack: 1001}), unNAT, "est|rpl|trk|snat")
		b.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 1011}), unNAT, "est|trk|dnat")
	}
	open()
	p := benchOf(t, b.Table)
	p.want(tcpFrame(client, service, 1234, 80, tcpText{flags: "A", seq: 1001, ack: 1011, length: 100}), unNAT, "est|trk|dnat")
	b.Flush()
	open()
	if got := p.ct(unNAT); got != "est|trk|dnat" {
		t.Errorf("ct_state %s", got)
	}
	var e store.Entry
	b.each(func(x *store.Entry, _ store.Handle) { e = *x })
	if e.TCP[tuple.Original].Next != 1001+100 || e.TCP[tuple.Reply].Next != 1011 {
		t.Errorf("the sides are at %d and %d", e.TCP[tuple.Original].Next, e.TCP[tuple.Reply].Next)
	}
}

// TestSegmentAndDeparture: a segment passes at the moment at which its connection is
// offloaded. The shared windows include it, and so do the windows after the offload.
func TestSegmentAndDeparture(t *testing.T) {
	b := newBench(t, Config{})
	b.ShareOffload(make([]OffloadWords, 8), func() {})
	var p *passer
	var seen Seen
	var next uint32
	var now int64
	var gone, passed bool
	races(func(i int) {
		at := uint32(i%500) * 10
		if now++; at == 0 {
			b.Flush()
			p = tcpSides(t, b.Table, 7, now)[tuple.Original]
		}
		if i&1 == 0 { // then the race's segment finds the expiry right
			p.shows(sideSegment(7, tuple.Original, at, 0, 0))
			p.pass(now)
		}
		p.shows(sideSegment(7, tuple.Original, at, 0, 10))
		seen, next = p.seen, 1001+at+10
	}, func(i int) {
		if passed = i&2 == 0 && p.pass(now); !passed {
			p.track(lookup, now)
		}
	}, func(int) {
		gone = b.Offload(&seen, 3, now)
	}, func(int) {
		there := b.offloads[3][offloadPeers+offloadNext].Load()
		b.StopOffload(seen.ID(), 3)
		b.EndOffload(seen.ID(), 3)
		if back := uint32(b.arena.At(seen.at.Slot).Sequence(0)); !gone || there != next || back != next {
			t.Errorf("gone %v, at %d there and %d back; the segment ended at %d", gone, there, back, next)
		}
	})
}

// BenchmarkTrackTCP is data on an established connection, tracked at times of their own.
func BenchmarkTrackTCP(b *testing.B) {
	w := newBench(b, Config{})
	sides := tcpSides(b, w.Table, 7, int64(time.Second))
	p := sides[tuple.Original]
	p.bytes = sideSegment(7, tuple.Original, 0, 0, 100)
	p.enter(p.bytes)
	seq := packet.TCP(p.frame.Bytes()[p.layers.L4:])
	b.ReportAllocs()
	for b.Loop() {
		p.now += 1000
		p.meta = Meta{sound: true}
		seq.SetSeq(seq.Seq() + 1)
		p.Track(p.frame, &p.layers, &p.meta, &lookup, p.now)
		if p.meta.State&Established == 0 {
			b.Fatalf("%+v", p.meta)
		}
	}
}
