package conntrack

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// passer is one packet, again and again, and what was last said about it.
type passer struct {
	*bench
	bytes []byte
	seen  Seen
	read  Passing
}

// benchOf is a bench for a table that others have, too.
func benchOf(t testing.TB, table *Table) *bench {
	return &bench{TB: t, Table: table, frame: packet.NewFrame(make([]byte, 2048), nil)}
}

// newPasser tracks a packet, which begins the connection if there is none, and keeps
// what was said.
func newPasser(t testing.TB, table *Table, frame []byte, now int64) *passer {
	p := &passer{bench: benchOf(t, table), bytes: frame}
	p.track(commit, now)
	if !p.read.Read(p.frame, &p.layers) {
		t.Fatal("a packet that cannot pass")
	}
	return p
}

// track tracks the packet, and keeps the result.
func (p *passer) track(r Request, now int64) {
	p.now = now
	p.enter(p.bytes)
	p.ct(r)
	p.seen, _ = p.meta.Seen()
}

// pass lets the packet pass at a time, by what was last said.
func (p *passer) pass(now int64) bool { return p.Pass(&p.seen, &p.read, now) }

// sideFrame is a connection's packet in a direction, back being the reply's.
func sideFrame(port uint16, back bool) []byte {
	if back {
		return udpFrame(server, client, 53, port)
	}
	return udpFrame(client, server, port, 53)
}

// pair is a connection that was replied to, and a packet of each direction.
func pair(t testing.TB, table *Table, port uint16, now int64) (sides [2]*passer) {
	for range 2 {
		for dir := range sides {
			sides[dir] = newPasser(t, table, sideFrame(port, dir == tuple.Reply), now)
		}
	}
	return sides
}

// raceRounds is how often two workers are let loose upon one connection.
const raceRounds = 5_000

// races runs rounds: in each, before, then two functions at the same time, as nearly as
// can be and none always first, then after.
func races(before, one, other, after func(round int)) {
	var met atomic.Int32
	meet := func(times int) {
		for met.Add(1); int(met.Load()) < times; {
			runtime.Gosched()
		}
	}
	linger := func() {
		for range rand.IntN(2000) {
			met.Load()
		}
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for i := range raceRounds {
			meet(4*i + 2)
			linger()
			other(i)
			meet(4*i + 4)
		}
	})
	for i := range raceRounds {
		before(i)
		meet(4*i + 2)
		linger()
		one(i)
		meet(4*i + 4)
		after(i)
	}
	wait.Wait()
}

// TestLastPacketAndEnd: a packet passes in the last moment of its connection, and the
// next moment another worker finds that its time has passed. Either the packet was
// first, and the connection goes on; or it was not, and does not pass.
func TestLastPacketAndEnd(t *testing.T) {
	t.Run("UDP", func(t *testing.T) {
		testLastPacketAndEnd(t, proto.DefaultTimeouts().UDPReplied, func(table *Table, _ int, now int64) [2]*passer {
			return pair(t, table, 7, now)
		})
	})
	t.Run("TCP", func(t *testing.T) {
		testLastPacketAndEnd(t, proto.DefaultTimeouts().TCPEstablished, func(table *Table, i int, now int64) [2]*passer {
			sides := tcpSides(t, table, 7, now)
			for dir, p := range sides {
				p.shows(sideSegment(7, dir, 0, 0, i&4)) // some move no number
			}
			return sides
		})
	})
}

// testLastPacketAndEnd has open make the connection of a round, which ends a timeout later.
func testLastPacketAndEnd(t *testing.T, timeout time.Duration, open func(table *Table, i int, now int64) [2]*passer) {
	b := newBench(t, Config{})
	var sides [2]*passer
	var at store.Handle
	var last int64
	var ok bool
	count := map[bool]int{}
	races(func(i int) {
		now := int64(i+1) * int64(time.Hour)
		sides = open(b.Table, i, now)
		at, last = sides[tuple.Original].seen.at, now+int64(timeout)-1
	}, func(i int) {
		if p := sides[i%2]; i&2 == 0 {
			ok = p.pass(last)
		} else {
			p.track(lookup, last)
			ok = p.seen.Known()
		}
	}, func(int) {
		b.expire(at, last+1)
	}, func(int) {
		c := b.arena.At(at.Slot)
		if left := store.Live(c.Head()); left != ok {
			t.Errorf("the packet passed: %v; and its connection is left: %v", ok, left)
		}
		if want := last + int64(timeout); ok && c.Expires() != want {
			t.Errorf("the packet passed, and its connection ends at %d, not %d", c.Expires(), want)
		}
		count[ok]++
		b.Flush()
	})
	t.Logf("the packet was first in %d rounds, and not in %d", count[true], count[false])
}

// TestPassBesideOthers: another worker holds the lock, and packets do not wait for that
// worker. Meanwhile a faster packet changes the expiry. A worker that changes the mark
// leaves that expiry. A worker that would end the connection sees that it has not expired.
// After a connection has ended, its expiry does not change.
func TestPassBesideOthers(t *testing.T) {
	b := newBench(t, Config{})
	sides := pair(t, b.Table, 7, 1)
	h := sides[tuple.Original].seen.at
	c := b.arena.At(h.Slot)
	expires := c.Expires()
	var e store.Entry
	if !c.LockIf(h.Gen) {
		t.Fatal("the connection is not there")
	}
	c.Load(&e)
	if sides[tuple.Original].pass(1) || sides[tuple.Reply].pass(2) {
		t.Error("a packet passed beside the lock")
	}
	if !c.Postpone(expires, expires+5) {
		t.Error("the expiry does not move under the lock")
	}
	e.Mark = 3
	c.Store(&e)
	c.Unlock(h.Gen)
	word, _, _ := c.Says()
	if mark := uint32(word); c.Expires() != expires+5 || mark != 3 {
		t.Errorf("the connection ends at %d, not %d, with mark %d", c.Expires(), expires+5, mark)
	}
	requests := 0
	if b.remove(h, func(c *store.Cell, at, now int64) bool {
		if requests++; requests == 1 && !c.Postpone(at, at+5) {
			t.Error("the expiry does not move under the lock")
		}
		return expired(c, at, now)
	}, expires+5) || requests != 2 {
		t.Errorf("asked %d times, the connection ended, which a packet had kept", requests)
	}
	if !b.remove(h, whatever, 1) || c.Postpone(expires+10, expires+20) {
		t.Error("of a connection that has ended, the expiry moves")
	}
}

// TestKnownPacketsTakeNoTurn: no worker locks a connection for packets that change only the
// expiry. A packet that changes more takes the lock.
func TestKnownPacketsTakeNoTurn(t *testing.T) {
	b := newBench(t, Config{})
	sides := pair(t, b.Table, 7, 1)
	c := b.arena.At(sides[tuple.Original].seen.at.Slot)
	head := c.Head()
	for i, p := range sides {
		now := int64(10 * (i + 1))
		if !p.pass(now) || c.Expires() != now+int64(b.machine.Timeouts.UDPReplied) {
			t.Errorf("a packet passed at %d, and the connection ends at %d", now, c.Expires())
		}
		if p.track(lookup, now+1); c.Expires() != now+1+int64(b.machine.Timeouts.UDPReplied) {
			t.Errorf("a packet was tracked at %d, and the connection ends at %d", now+1, c.Expires())
		}
		if p.ct(lookup); p.meta.State&Established == 0 {
			t.Errorf("a packet that met its connection twice is %+v", p.meta)
		}
	}
	if c.Head() != head {
		t.Errorf("the head went from %x to %x", head, c.Head())
	}
	if sides[tuple.Reply].ct(Request{Zone: 100, Mark: 1, MarkMask: 1}); c.Head() != head+turns {
		t.Errorf("with a mark the head went from %x to %x", head, c.Head())
	}
}

// TestPassesAndReuse: packets of both directions pass while another worker marks their
// connection, ends it and gives its cell to another one. The packets change no freed cell,
// and no cell of the other connection. No packet passes by a result from before the end or
// before the mark.
func TestPassesAndReuse(t *testing.T) {
	r := reuse{bench: newBench(t, Config{})}
	r.clock.Store(1)
	sides := pair(t, r.Table, 7, 1)
	r.slot = sides[tuple.Original].seen.at.Slot
	var wait sync.WaitGroup
	wait.Go(func() { r.runPasser(sides[tuple.Original]) })
	wait.Go(func() { r.runPasser(sides[tuple.Reply]) })
	for i := 0; i < raceRounds && !t.Failed(); i++ {
		r.round()
	}
	r.stop.Store(true)
	wait.Wait()
	t.Logf("%d packets passed", r.passed.Load())
	if r.passed.Load() == 0 {
		t.Error("no packet passed")
	}
}

// reuse is a cell that one connection has after the other, and what the worker that changes
// them has done.
type reuse struct {
	*bench
	slot          uint32
	clock, passed atomic.Int64
	ended         atomic.Uint32 // the last generation that ended
	marked        atomic.Uint64 // a generation's mark, the generation above it
	stop          atomic.Bool
}

// runPasser lets packets of one direction pass, or be tracked, for as long as the cell is
// changed.
func (r *reuse) runPasser(p *passer) {
	for !r.stop.Load() {
		ended, marked := r.ended.Load(), r.marked.Load()
		if rand.IntN(4) == 0 || !p.pass(r.clock.Add(1)) {
			p.track(lookup, r.clock.Add(1))
		}
		switch {
		case !p.seen.Known():
		case p.seen.at.Gen <= ended || p.seen.at.Gen == uint32(marked>>32) && p.seen.mark < uint32(marked) || uint64(p.seen.mark) != p.seen.label.Lo:
			r.Errorf("a packet passed by %+v after generation %d had ended, and mark %d was set of %d", p.seen, ended, uint32(marked), marked>>32)
			return
		default:
			r.passed.Add(1)
		}
	}
}

// round ends the connection, and gives its cell to another one for a while. Then it begins
// and marks the connection again.
func (r *reuse) round() {
	c := r.arena.At(r.slot)
	r.end(c)
	r.stays(c, 0)
	r.trackInCell(udpFrame(client, server, 8, 53), Request{Commit: true, Zone: 100})
	r.stays(c, uint64(r.now)+uint64(r.machine.Timeouts.UDPSingle))
	r.end(c)
	r.trackInCell(sideFrame(7, false), commit)
	r.trackInCell(sideFrame(7, true), commit)
	for mark := range rand.Uint32N(50) {
		r.trackInCell(sideFrame(7, false), Request{
			Zone: 100, Mark: mark + 1, MarkMask: 1<<32 - 1, Label: Label{Lo: uint64(mark + 1)}, LabelMask: Label{Lo: 1<<64 - 1},
		})
		r.marked.Store(uint64(r.meta.at.Gen)<<32 | uint64(mark+1))
	}
}

// end ends the connection that has the cell.
func (r *reuse) end(c *store.Cell) {
	gen := uint32(c.Head())
	if !r.remove(store.Handle{Slot: r.slot, Gen: gen}, whatever, r.now) {
		r.Error("there is no connection in the cell")
	}
	r.ended.Store(gen)
}

// trackInCell tracks a packet of the connection that has the cell from then on.
func (r *reuse) trackInCell(frame []byte, how Request) {
	r.now = r.clock.Add(1)
	r.enter(frame)
	if r.ct(how); r.meta.at.Slot != r.slot {
		r.Errorf("the packet's connection is not in the cell: %+v", r.meta)
	}
}

// stays checks for a while that the expiry does not change.
func (r *reuse) stays(c *store.Cell, want uint64) {
	for range rand.IntN(200) {
		if got := uint64(c.Expires()); got != want {
			r.Errorf("a cell that is not their connection's: packets moved its expiry from %d to %d", want, got)
			return
		}
	}
}

// BenchmarkPass is packets of known connections, of one connection after the other, with a
// new time after 64 packets. They are of UDP, or of TCP: data and acknowledgements in turn.
func BenchmarkPass(b *testing.B) {
	for _, kind := range []string{"udp", "tcp"} {
		for _, n := range []int{1, 100_000} {
			b.Run(fmt.Sprint(kind, "/", n), func(b *testing.B) {
				w := newBench(b, Config{Max: 1 << 17, NewRate: -1})
				sides := w.open(kind, n)
				var p [2]Passing
				for dir := range p {
					p[dir].Read(w.frame, &w.layers)
				}
				p[tuple.Original].packet.Segment = proto.Segment{Seq: 1001, Ack: 5001, Length: 100, Window: 8192, Flags: packet.TCPAck}
				p[tuple.Reply].packet.Segment = proto.Segment{Seq: 5001, Ack: 1101, Window: 8192, Flags: packet.TCPAck}
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					dir := i / n & 1
					if i%n == 0 {
						p[dir].packet.Segment.Seq += uint32(100 * (1 - dir))
						p[dir].packet.Segment.Ack += uint32(100 * dir)
					}
					if i%64 == 0 {
						w.now++
					}
					if !w.Pass(&sides[dir][i%n], &p[dir], w.now) {
						b.Fatal("a packet did not pass")
					}
				}
			})
		}
	}
}

// open makes established connections, and returns in no order what is said of their two
// directions. The packet that is in is of the last one.
func (b *bench) open(kind string, n int) (sides [2][]Seen) {
	for i := range n {
		src, port := fmt.Sprintf("10.1.%d.%d", i>>8&0xff, i&0xff), uint16(1+i>>16)
		frames := [2][]byte{udpFrame(src, server, port, 53), udpFrame(server, src, 53, port)}
		if kind == "tcp" {
			b.want(tcpFrame(src, server, port, 80, tcpText{flags: "S", seq: 1000}), commit, "new|trk")
			b.want(tcpFrame(server, src, 80, port, tcpText{flags: "SA", seq: 5000, ack: 1001}), lookup, "est|rpl|trk")
			frames[tuple.Original] = tcpFrame(src, server, port, 80, tcpText{flags: "A", seq: 1001, ack: 5001})
			frames[tuple.Reply] = tcpFrame(server, src, 80, port, tcpText{flags: "A", seq: 5001, ack: 1001})
		} else {
			b.want(frames[tuple.Original], commit, "new|trk")
		}
		for dir := range sides {
			b.want(frames[1-dir], lookup, [2]string{"est|rpl|trk", "est|trk"}[dir])
			seen, _ := b.meta.Seen()
			sides[1-dir] = append(sides[1-dir], seen)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(n, func(i, j int) {
		for dir := range sides {
			sides[dir][i], sides[dir][j] = sides[dir][j], sides[dir][i]
		}
	})
	return sides
}

// TestLooksSeeOneMoment: another worker changes mark and label together. No time passes, so
// packets change not even an expiry. No packet that looks the connection up, or finds it
// again, sees one change without the other. No packet passes by that state.
func TestLooksSeeOneMoment(t *testing.T) {
	b := newBench(t, Config{})
	sides := pair(t, b.Table, 7, 1)
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		p := sides[tuple.Original]
		for half := p.seen; !stop.Load(); half.label.Hi, half.label.Lo = uint64(half.mark), uint64(half.mark) {
			if half.mark ^= 1; p.Pass(&half, &p.read, 1) {
				t.Errorf("a packet passed by mark %x with label %v", half.mark, half.label)
				return
			}
		}
	})
	wait.Go(func() {
		for p := sides[tuple.Reply]; !stop.Load(); {
			p.track(lookup, 1)
			for range 100 {
				if m := uint64(p.meta.Mark); p.meta.State&Established == 0 || p.meta.Label != (Label{m, m}) {
					t.Errorf("%+v: mark %x with label %v", p.meta.State, m, p.meta.Label)
					return
				}
				p.ct(lookup)
			}
		}
	})
	w := newPasser(t, b.Table, sideFrame(7, false), 1)
	for i := range 40 * raceRounds {
		m := uint64(i % 2)
		w.track(Request{
			Zone: 100, Mark: uint32(m), MarkMask: 1<<32 - 1, Label: Label{m, m}, LabelMask: Label{1<<64 - 1, 1<<64 - 1},
		}, 1)
	}
	stop.Store(true)
	wait.Wait()
}

// TestPassAsks: a packet does not pass if any part of the earlier result is out of date,
// nor at the moment at which the connection expires. Then nothing changes.
func TestPassAsks(t *testing.T) {
	b := newBench(t, Config{})
	for kind, p := range map[string]*passer{"UDP": pair(t, b.Table, 7, 1)[tuple.Original], "TCP": tcpSides(t, b.Table, 7, 1)[tuple.Original]} {
		c := b.arena.At(p.seen.at.Slot)
		ends := c.Expires()
		for what, change := range map[string]func(s *Seen){
			"mark":             func(s *Seen) { s.mark ^= 1 },
			"label, above":     func(s *Seen) { s.label.Hi++ },
			"label, below":     func(s *Seen) { s.label.Lo++ },
			"answered":         func(s *Seen) { s.flags ^= seenEstablished },
			"of the one after": func(s *Seen) { s.at.Gen -= 2 },
		} {
			s := p.seen
			if change(&s); p.Pass(&s, &p.read, 2) || c.Expires() != ends {
				t.Errorf("%s, %s: a packet passed, and the connection ends at %d, not %d", kind, what, c.Expires(), ends)
			}
		}
		if p.pass(ends) {
			t.Errorf("%s: a packet passed when the connection had ended", kind)
		}
		if copied, locked := (&visit{t: b.Table, now: ends}), (&visit{t: b.Table, now: ends}); copied.snapshot(p.seen.at) || locked.lock(p.seen.at) {
			t.Errorf("%s: a connection was found when it had ended", kind)
		}
		if !p.pass(2) {
			t.Errorf("%s: a packet does not pass by what is so", kind)
		}
	}
	once := newPasser(t, b.Table, sideFrame(9, false), 1)
	answers := once.seen
	if answers.dir = tuple.Reply; once.Pass(&answers, &once.read, 2) || !once.pass(2) {
		t.Error("an answer passed as if it were none")
	}
}
