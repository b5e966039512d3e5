package conntrack

import (
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
)

// passAndTrack is a connection in two tables. In the first one, segments pass if they can.
// In the second one, all are tracked under the lock.
type passAndTrack struct {
	*rand.Rand
	passes, tracks *bench
	seen           [2]Seen // of each direction, in the first table
	passed         int
}

// locking is a ct() that takes the lock of any connection, and changes nothing.
var locking = Request{Zone: 100, Commit: true, LabelMask: Label{Hi: 1}}

// TestPassAsTrack: a segment that passes has the same effect as one that is tracked under
// the lock, and passes by the result of that. Most segments lie at the edges of the
// windows, which are scaled and of different sizes, and near the wrap of the sequence
// numbers.
func TestPassAsTrack(t *testing.T) {
	seed := seeds(t)
	x := passAndTrack{Rand: rand.New(rand.NewPCG(seed, 0))}
	for range 300 {
		x.passes, x.tracks = newBench(t, Config{}), newBench(t, Config{})
		x.open()
		for range 50 {
			if x.step(); t.Failed() {
				return
			}
		}
	}
	t.Logf("%d of %d segments passed", x.passed, 300*50)
	if x.passed < 1000 {
		t.Error("hardly any segment passed: this proves little")
	}
}

// open is the three segments that open the connection.
func (x *passAndTrack) open() {
	seq, ack := -x.Uint32N(200_000), -x.Uint32N(200_000)
	scales := [2]int{x.IntN(15), x.IntN(15)}
	window := func() uint16 { return 1 + uint16(x.Uint32N(1<<16-1)) }
	x.send(tuple.Original, tcpText{flags: "S", seq: seq, window: window(), scale: scales[0]})
	x.send(tuple.Reply, tcpText{flags: "SA", seq: ack, ack: seq + 1, window: window(), scale: scales[1]})
	x.send(tuple.Original, tcpText{flags: "A", seq: seq + 1, ack: ack + 1, window: window()})
}

// step is one segment, and now and then time that goes by.
func (x *passAndTrack) step() {
	if x.IntN(4) == 0 {
		x.passes.now += x.Int64N(1e9)
		x.tracks.now = x.passes.now
	}
	var e store.Entry
	x.tracks.arena.At(1).Load(&e)
	dir := x.IntN(2)
	src, dst := &e.TCP[dir], &e.TCP[1-dir]
	of := func(all ...uint32) uint32 { return all[x.IntN(len(all))] }
	g := tcpText{flags: "A", length: int(of(0, 1, 1, 1000)), window: uint16(1 + x.Uint32N(1<<(1+x.IntN(16))-1))}
	if x.IntN(100) == 0 {
		g.flags = "FA"
	}
	near := of(0, 1, 1<<32-1, x.Uint32N(1000))
	g.seq = near + of(src.Next, src.Next, src.Next, src.Limit, src.Limit-uint32(g.length), src.Next-dst.Window, src.Next-src.Window)
	near = of(0, 1, 1<<32-1, -x.Uint32N(1000))
	g.ack = near + of(dst.Next, dst.Next, dst.Next, dst.Next+slack, dst.Next-slack<<src.Shift(dst), dst.Next-slack<<dst.Shift(src))
	x.send(dir, g)
}

// send sends a segment in both tables, and compares them.
func (x *passAndTrack) send(dir int, g tcpText) {
	frame := tcpFrame(client, server, 7, 80, g)
	if dir == tuple.Reply {
		frame = tcpFrame(server, client, 80, 7, g)
	}
	one, other := x.passes, x.tracks
	one.enter(frame)
	other.enter(frame)
	want := other.ct(locking)
	var p Passing
	if s := &x.seen[dir]; g.flags == "A" && s.Known() && s.at.Slot != 0 && p.Read(one.frame, &one.layers) && one.Pass(s, &p, one.now) {
		if x.passed++; other.meta.State&Established == 0 {
			one.Errorf("%+v passed, and is %s", g, want)
		}
	} else if got := one.ct(locking); got != want {
		one.Errorf("%+v is %s, and %s", g, got, want)
	} else {
		x.seen[dir], _ = one.meta.Seen()
	}
	var a, b store.Entry
	one.arena.At(1).Load(&a)
	other.arena.At(1).Load(&b)
	if a != b {
		one.Errorf("after %+v in direction %d the connection is %+v, want %+v", g, dir, a, b)
	}
}
