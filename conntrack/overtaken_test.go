package conntrack

import (
	"runtime"
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/internal/racetest"
	"github.com/antrail/antrail/packet"
)

// TestOvertaken: another worker changes the connection after advance has its copy. If that worker
// has changed a word that the segment changes, or has taken the lock, the segment is not
// committed. The other worker's words stay.
func TestOvertaken(t *testing.T) {
	const one, other = tuple.Original, tuple.Reply // the directions
	ahead := func(dir int, n proto.Sequence) func(*store.Cell, uint32) {
		return func(c *store.Cell, _ uint32) {
			from := proto.Progress{Sequence: c.Sequence(dir)}
			c.Commit(c.Head(), dir, from, proto.Progress{Sequence: from.Sequence + n})
		}
	}
	expires := func(c *store.Cell) uint64 { return uint64(c.Expires()) }
	sequence := func(dir int) func(*store.Cell) uint64 {
		return func(c *store.Cell) uint64 { return uint64(c.Sequence(dir)) }
	}
	for name, test := range map[string]struct {
		length    uint32 // of the segment; with 0 it changes the expiry alone
		meanwhile func(c *store.Cell, gen uint32)
		want      bool                     // the segment is committed
		stays     func(*store.Cell) uint64 // a word that the segment does not change
	}{
		"by nobody":                    {100, func(*store.Cell, uint32) {}, true, sequence(other)},
		"by one of its direction":      {100, ahead(one, 7), false, sequence(one)},
		"by one of the other's":        {100, ahead(other, 7), true, sequence(other)},
		"by the same":                  {100, ahead(one, 100), false, expires},
		"by another time":              {0, func(c *store.Cell, _ uint32) { c.Postpone(c.Expires(), c.Expires()+7) }, false, expires},
		"by its end":                   {0, func(c *store.Cell, _ uint32) { c.Postpone(c.Expires(), 0) }, false, expires},
		"by its end, with data":        {100, func(c *store.Cell, _ uint32) { c.Postpone(c.Expires(), 0) }, false, expires},
		"by who holds the lock":        {100, func(c *store.Cell, gen uint32) { c.LockIf(gen) }, false, expires},
		"by who has given it back":     {100, func(c *store.Cell, gen uint32) { c.LockIf(gen); c.Unlock(gen) }, false, expires},
		"by who has ended it and more": {100, func(c *store.Cell, gen uint32) { c.LockIf(gen); c.Unlock(gen + 2) }, false, expires},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Config{})
			at := tcpSides(t, b.Table, 7, 1)[tuple.Original].seen.at
			c := b.arena.At(at.Slot)
			var read proto.State
			head := c.Head()
			c.LoadState(&read, packet.ProtoTCP)
			test.meanwhile(c, at.Gen)
			stays := test.stays(c)
			p := packetOf(proto.Segment{Seq: 1001, Ack: 5001, Length: test.length, Window: 8192, Flags: packet.TCPAck})
			if _, _, got := b.advance(c, head, &read, &p, tuple.Original, 2); got != test.want {
				t.Errorf("the segment is committed: %v, want %v", got, test.want)
			}
			if now := test.stays(c); now != stays {
				t.Errorf("what it does not move went from %x to %x", stays, now)
			}
		})
	}
}

// packetOf is what the state machine reads of a segment.
func packetOf(g proto.Segment) proto.Packet {
	return proto.Packet{Protocol: packet.ProtoTCP, Segment: g}
}

// TestHalfWritten: another worker locks the connection again and again, and has written the
// mark but not yet the label. No packet sees one without the other, whether it looks its
// connection up or passes. No packet passes by that state.
func TestHalfWritten(t *testing.T) {
	b := newBench(t, Config{})
	udp, tcp := pair(t, b.Table, 7, 1)[tuple.Original], tcpSides(t, b.Table, 7, 1)[tuple.Original]
	for name, test := range map[string]struct {
		p    *passer
		look func(p *passer) bool // whether half of what was written was seen
	}{
		"UDP passes":    {udp, (*passer).passesByHalf},
		"TCP passes":    {tcp, (*passer).passesByHalf},
		"UDP looked up": {udp, (*passer).looksAtHalf},
		"TCP looked up": {tcp, (*passer).looksAtHalf},
	} {
		t.Run(name, func(t *testing.T) {
			at := test.p.seen.at
			c := b.arena.At(at.Slot)
			racetest.Beside(func() {
				if test.look(test.p) {
					t.Error("a packet saw what was half written")
				}
			}, func(i int) { writeSlowly(c, at.Gen, uint64(i%2)) }, func() bool { return c.Head()&store.Locked != 0 })
		})
	}
}

// writeSlowly makes mark and label m, the label some time after the mark.
func writeSlowly(c *store.Cell, gen uint32, m uint64) {
	c.LockIf(gen)
	var e store.Entry
	c.Load(&e)
	e.Mark = uint32(m)
	c.Store(&e)
	racetest.Linger(100)
	e.Label = Label{m, m}
	c.Store(&e)
	c.Unlock(gen)
}

// passesByHalf says whether a packet passes by a mark and the label of the write before.
// The packet does not change the expiry.
func (p *passer) passesByHalf() bool {
	half := p.seen
	half.mark ^= 1
	half.label = Label{uint64(p.seen.mark), uint64(p.seen.mark)}
	p.seen = half
	return p.pass(1)
}

// looksAtHalf says whether a copy has a mark and another label.
func (p *passer) looksAtHalf() bool {
	var v visit
	v.t, v.now = p.Table, 1
	m := uint64(v.e.Mark)
	if v.snapshot(p.seen.at) {
		m = uint64(v.e.Mark)
	}
	return v.e.Label != Label{m, m}
}

// TestTrackedAgain: after a segment has made its copy without the lock, and before it takes
// the lock, the mark may change or the connection may expire. Then the segment does not
// pass, and changes nothing.
func TestTrackedAgain(t *testing.T) {
	b := newBench(t, Config{})
	s := tcpSides(t, b.Table, 7, 1)[tuple.Original].seen
	c := b.arena.At(s.at.Slot)
	marked, ends, sequence := s, c.Expires(), c.Sequence(0)
	marked.mark++
	p := Passing{packet: packetOf(proto.Segment{Seq: 1001, Ack: 5001, Length: 100, Window: 9000, Flags: packet.TCPAck})}
	if b.passLocked(&marked, &p, 2) || b.passLocked(&s, &p, ends) || c.Expires() != ends || c.Sequence(0) != sequence {
		t.Errorf("a segment passed by what no longer was; the connection ends at %d, not %d", c.Expires(), ends)
	}
	if !b.passLocked(&s, &p, 2) || c.Sequence(0) == sequence {
		t.Error("a segment does not pass by what is so")
	}
}

// TestEndWaits: a worker that ends a connection waits for the worker that holds the lock.
// Otherwise the unlock would make the connection live again, while it is not in the index.
func TestEndWaits(t *testing.T) {
	b := newBench(t, Config{})
	h := pair(t, b.Table, 7, 1)[tuple.Original].seen.at
	c := b.arena.At(h.Slot)
	c.LockIf(h.Gen)
	head, ended := c.Head(), make(chan bool)
	go func() { ended <- b.remove(h, whatever, 1) }()
	for range 1000 {
		select {
		case <-ended:
			t.Fatal("a connection ended under the lock of another")
		default:
			runtime.Gosched()
		}
	}
	if c.Head() != head || c.Expires() == 0 {
		t.Errorf("under the lock of another the head went from %x to %x, the expiry is %d", head, c.Head(), c.Expires())
	}
	if c.Unlock(h.Gen); !<-ended || store.Live(c.Head()) {
		t.Error("the connection did not end")
	}
	b.checkOrder()
}

// TestEvictLooksAgain: a connection that was chosen to go for another one, and is answered
// before it goes, stays.
func TestEvictLooksAgain(t *testing.T) {
	b := newBench(t, Config{})
	h := newPasser(t, b.Table, sideFrame(7, false), 1).seen.at
	c := b.arena.At(h.Slot)
	words := c.FixedWords()
	chain := b.place(&words, nil).forward
	c.LockIf(h.Gen)
	evicted := make(chan bool)
	go func() { gone, _ := b.evict(0, false, anyZone, int64(time.Minute)); evicted <- gone }()
	for free := true; free; { // it has chosen once it holds the chain's lock
		got := make(chan bool)
		go func() {
			b.index.LockPair(chain, chain)
			b.index.UnlockPair(chain, chain)
			close(got)
		}()
		select {
		case <-got:
		case <-time.After(10 * time.Millisecond):
			free = false
		}
	}
	var e store.Entry
	c.Load(&e)
	e.Flags |= proto.Replied
	b.relist(&e, h.Slot, 1)
	c.Store(&e)
	if c.Unlock(h.Gen); <-evicted || uint32(c.Head()) != h.Gen {
		t.Error("an answered connection was evicted")
	}
	b.checkOrder()
}
