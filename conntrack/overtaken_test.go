package conntrack

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrail/antrail/packet"
)

// TestOvertaken: slide has a connection as it was read, and somebody has changed it
// since. Where that is anything that the segment moves, or the lock was taken, the
// segment has to go again, and what the other one wrote stays.
func TestOvertaken(t *testing.T) {
	for name, test := range map[string]struct {
		length    uint32 // of the segment; 0 moves the expiry alone
		meanwhile func(c *cell, gen uint32)
		want      sliding
		stays     int // a word that the segment does not move
	}{
		"by nobody":                    {100, func(*cell, uint32) {}, slid, 4 + reply},
		"by one of its direction":      {100, func(c *cell, _ uint32) { c.mut[4+original].Add(7) }, beaten, 4 + original},
		"by one of the other's":        {100, func(c *cell, _ uint32) { c.mut[4+reply].Add(7) }, slid, 4 + reply},
		"by the same":                  {100, func(c *cell, _ uint32) { c.mut[4+original].Add(100) }, beaten, 0},
		"by another time":              {0, func(c *cell, _ uint32) { c.mut[0].Add(7) }, beaten, 0},
		"by its end":                   {0, func(c *cell, _ uint32) { c.mut[0].Store(0) }, beaten, 0},
		"by its end, with data":        {100, func(c *cell, _ uint32) { c.mut[0].Store(0) }, beaten, 0},
		"by who holds the lock":        {100, func(c *cell, gen uint32) { c.lock(gen) }, beaten, 0},
		"by who has given it back":     {100, func(c *cell, gen uint32) { c.lock(gen); c.unlock(gen) }, beaten, 0},
		"by who has ended it and more": {100, func(c *cell, gen uint32) { c.lock(gen); c.unlock(gen + 2) }, beaten, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Config{})
			at := tcpSides(t, b.Table, 7, 1)[original].seen.at
			c := b.arena.at(at.slot)
			read, expires := both{head: c.head.Load()}, c.expires()
			read.load(c, original)
			test.meanwhile(c, at.gen)
			stays := c.mut[test.stays].Load()
			g := segment{seq: 1001, ack: 5001, length: test.length, window: 8192, flags: packet.TCPAck}
			if got := b.slide(c, &read, &g, expires, 2); got != test.want {
				t.Errorf("the segment is %d, want %d", got, test.want)
			}
			if now := c.mut[test.stays].Load(); now != stays {
				t.Errorf("word %d went from %x to %x", test.stays, stays, now)
			}
		})
	}
}

// TestHalfWritten: another worker holds the lock again and again, and has written the
// mark and not yet the label. No packet sees the one without the other, whether it looks
// its connection up or passes, and none passes by that.
func TestHalfWritten(t *testing.T) {
	b := newBench(t, Config{})
	udp, tcp := pair(t, b.Table, 7, 1)[original], tcpSides(t, b.Table, 7, 1)[original]
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
			c := b.arena.at(at.slot)
			beside(func() {
				if test.look(test.p) {
					t.Error("a packet saw what was half written")
				}
			}, func(i int) { c.writeSlowly(at.gen, uint64(i%2)) }, func() bool { return c.head.Load()&locked != 0 })
		})
	}
}

// beside has one worker look, and another one write, until the one has often come upon the
// other's writing, as between tells, or long, where there is but one processor.
func beside(look func(), write func(i int), between func() bool) {
	const often, long = 10 * raceRounds, 100 * raceRounds
	var stop atomic.Bool
	var wait sync.WaitGroup
	wait.Go(func() {
		for met, was := 0, false; !stop.Load() && met < often; look() {
			now := between()
			if now && !was {
				met++
			}
			was = now
		}
		stop.Store(true)
	})
	for i := 0; i < long && !stop.Load(); i++ {
		write(i)
		linger(rand.IntN(200))
	}
	stop.Store(true)
	wait.Wait()
}

// writeSlowly makes mark and label m, the label some time after the mark.
func (c *cell) writeSlowly(gen uint32, m uint64) {
	c.lock(gen)
	setWord(&c.mut[1], c.mut[1].Load()>>32<<32|m)
	linger(100)
	setWord(&c.mut[2], m)
	setWord(&c.mut[3], m)
	c.unlock(gen)
}

// passesByHalf says whether a packet, that moves not even the expiry, passes by a mark
// with the label before.
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
	m := uint64(v.e.mark)
	if v.look(p.seen.at) {
		m = uint64(v.e.mark)
	}
	return v.e.label != Label{m, m}
}

// TestAskedAgain: a segment that takes the lock after all may find another connection
// there than it has looked at: one with another mark, or whose time has passed by then.
// It does not pass, and moves nothing.
func TestAskedAgain(t *testing.T) {
	b := newBench(t, Config{})
	s := tcpSides(t, b.Table, 7, 1)[original].seen
	c := b.arena.at(s.at.slot)
	marked, ends, course := s, c.expires(), c.mut[4].Load()
	marked.mark++
	g := segment{seq: 1001, ack: 5001, length: 100, window: 9000, flags: packet.TCPAck}
	if b.passLocked(&marked, &g, 2) || b.passLocked(&s, &g, ends) || c.expires() != ends || c.mut[4].Load() != course {
		t.Errorf("a segment passed by what no longer was; the connection ends at %d, not %d", c.expires(), ends)
	}
	if !b.passLocked(&s, &g, 2) || c.mut[4].Load() == course {
		t.Error("a segment does not pass by what is so")
	}
}

// TestEndWaits: who ends a connection waits for who holds its lock. That one's giving it
// back would else make the connection live again, and out of the index.
func TestEndWaits(t *testing.T) {
	b := newBench(t, Config{})
	h := pair(t, b.Table, 7, 1)[original].seen.at
	c := b.arena.at(h.slot)
	c.lock(h.gen)
	head, ended := c.head.Load(), make(chan bool)
	go func() { ended <- b.remove(h, whatever, 1) }()
	for range 1000 {
		select {
		case <-ended:
			t.Fatal("a connection ended under the lock of another")
		default:
			runtime.Gosched()
		}
	}
	if c.head.Load() != head || c.expires() == 0 {
		t.Errorf("under the lock of another the head went from %x to %x, the expiry is %d", head, c.head.Load(), c.expires())
	}
	if c.unlock(h.gen); !<-ended || live(c.head.Load()) {
		t.Error("the connection did not end")
	}
	b.checkOrder()
}

// TestTwoLives: a cell is one connection's and then another's, again and again, and the
// new keys come into it word by word. No lookup finds a key that is of both.
func TestTwoLives(t *testing.T) {
	var c cell
	one, other := keyWords{0, 1, 0, 0, 1}, keyWords{0, 2, 0, 0, 2}
	both := keyWords{0, 2, 0, 0, 1}
	beside(func() {
		if gen, found := c.holds(original, &both); found {
			t.Errorf("in life %d the cell held what it never does", gen)
		}
	}, func(i int) {
		c.unlock(2 * uint32(i))
		w := one
		if i%2 == 1 {
			w = other
		}
		setWord(&c.keys[original][1], w[1])
		linger(100)
		setWord(&c.keys[original][4], w[4])
		c.unlock(2*uint32(i) + 1)
	}, func() bool { return !live(c.head.Load()) })
}

// linger does nothing for a while.
func linger(n int) {
	for range n {
		lingered.Load()
	}
}

var lingered atomic.Uint32

// TestStoreOrder: the states of a connection are in its cell only when the numbers that
// go with them are: whoever takes the cell over from a process that was killed in
// between has states of before.
func TestStoreOrder(t *testing.T) {
	var c cell
	beside(func() {
		if window, next := uint32(c.mut[6].Load()), uint32(c.mut[4].Load()); int32(next-window) < 0 {
			t.Errorf("state %d goes with number %d", window, next)
		}
	}, func(i int) {
		e := entry{keys: [2]key{{proto: packet.ProtoTCP}}}
		e.tcp[original] = peer{next: uint32(i), window: uint32(i)}
		c.store(&e)
	}, func() bool { return c.mut[6].Load()&1 != 0 })
}

// TestLinked: while another cell comes into its chain, and goes again, a lookup that is
// sure finds what is there.
func TestLinked(t *testing.T) {
	a, x := newArena(100*raceRounds+1), newIndex(4) // a cell for each turn of beside
	w := keyWords{1, 2, 3, 4, 5}
	stays := a.alloc()
	a.at(stays).fill(&entry{}, &fixedWords{1, 2, 3, 4, 5})
	a.at(stays).unlock(1)
	const chain = 3
	x.link(a, chain, makeRef(stays, original))
	beside(func() {
		if r, _, sure := x.walk(a, chain, &w); sure && r == 0 {
			t.Error("a lookup is sure that nothing is there")
		}
	}, func(int) {
		r := makeRef(a.alloc(), original)
		x.link(a, chain, r)
		linger(20)
		x.unlink(a, chain, r)
	}, func() bool { return x.heads[chain].Load() != makeRef(stays, original) })
}

// TestEvictAsksAgain: a connection that was chosen to go for another one, and is answered
// before it goes, stays.
func TestEvictAsksAgain(t *testing.T) {
	b := newBench(t, Config{})
	h := newPasser(t, b.Table, sideFrame(7, false), 1).seen.at
	c := b.arena.at(h.slot)
	words := c.fixedWords()
	stripe := &b.index.stripes[b.place(&words, nil).forward%stripeCount]
	c.lock(h.gen)
	evicted := make(chan bool)
	go func() { gone, _ := b.evict(0, false, anyZone, int64(time.Minute)); evicted <- gone }()
	for stripe.TryLock() { // it has chosen once it holds this
		stripe.Unlock()
		runtime.Gosched()
	}
	var e entry
	c.load(&e)
	e.saw(reply)
	b.relist(&e, h.slot, 1)
	c.store(&e)
	if c.unlock(h.gen); <-evicted || uint32(c.head.Load()) != h.gen {
		t.Error("an answered connection was evicted")
	}
	b.checkOrder()
}
