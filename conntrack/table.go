package conntrack

import (
	"sync/atomic"
	"time"
)

// Config is what a Table is made from.
type Config struct {
	// Now is a monotonic clock in nanoseconds; the process's own when nil.
	Now func() int64
	// Timeouts is DefaultTimeouts when zero.
	Timeouts Timeouts
	// Max is how many connections may exist, DefaultMax when 0.
	Max int
	// Capacity is how many SetMax may ever allow, Max when that is more. The
	// memory is laid out for it at once: 208 bytes a connection.
	Capacity int
	// NewRate is how many connections a port may begin in a second, after a
	// burst of two seconds' worth (CT-39): DefaultNewRate when 0, without limit
	// when negative.
	NewRate int
	// SharedPorts are ports that many senders share: the tunnel and the gateway.
	// Each has as large a share of the table as all other ports together (CT-47).
	SharedPorts []uint32
	// Seed makes the hash, and so every choice of NAT, repeatable in tests;
	// when zero the table draws a secret.
	Seed [2]uint64
	// StrictWindow makes TCP data outside the window +inv instead of passing
	// it without effect (D3).
	StrictWindow bool
	// Reserved is ports of the Node that source NAT never uses: its NodePort
	// range and its own listeners.
	Reserved []PortRange
}

// PortRange is ports Min to Max, both included.
type PortRange struct{ Min, Max uint16 }

// Table is a connection table.
type Table struct {
	secret   secret
	chains   chainSecret
	arena    *arena
	index    index
	clock    func() int64
	timeouts Timeouts
	reserved []PortRange
	limits   limits
	shares   shares
	sweeper  sweeper
	counts   counts
	seqCheck atomic.Bool
	strict   bool
	shielded atomic.Pointer[shielded] // of Shield, nil before

	aways  []Away      // of ShareAway, nil before
	settle func()      // of ShareAway
	ended  atomic.Bool // connections that were away have ended since settle was called

	parent   *Table              // of a Scratch
	shadowed map[handle]struct{} // the parent's entries that the Scratch has copied
}

// withDefaults is the configuration with what was left out.
func (c Config) withDefaults() Config {
	if c.Now == nil {
		start := time.Now()
		c.Now = func() int64 { return int64(time.Since(start)) }
	}
	if c.Timeouts == (Timeouts{}) {
		c.Timeouts = DefaultTimeouts()
	}
	if c.Max == 0 {
		c.Max = DefaultMax()
	}
	c.Capacity = max(c.Max, c.Capacity)
	if c.Seed == [2]uint64{} {
		c.Seed = newSecret()
	}
	return c
}

// NewTable makes an empty table in memory of the process's own.
func NewTable(c Config) *Table {
	c = c.withDefaults()
	return newTable(&c, newArena(c.Capacity))
}

// newTable is a table over an arena; c is complete.
func newTable(c *Config, a *arena) *Table {
	t := &Table{
		secret: c.Seed, chains: secret(c.Seed).chains(), arena: a, index: newIndex(a.capacity()), clock: c.Now,
		timeouts: c.Timeouts, reserved: c.Reserved, strict: c.StrictWindow,
	}
	t.limits.max.Store(int64(c.Max))
	t.SetNewRate(c.NewRate)
	for _, port := range c.SharedPorts {
		t.shares.of(t, port).many = true
	}
	t.sweeper.last.Store(c.Now())
	t.seqCheck.Store(true)
	return t
}

// SetSequenceCheck turns the check of TCP sequence numbers on or off, as
// dpctl/ct-enable-tcp-seq-chk and ct-disable-tcp-seq-chk do. Without it every
// segment counts as inside the window, and every RST as exact.
func (t *Table) SetSequenceCheck(on bool) { t.seqCheck.Store(on) }

// find is the live connection of a key and the direction in which the key
// runs. A connection whose time has passed is removed on the way.
func (t *Table) find(k *key, now int64) (h handle, dir int, ok bool) {
	return t.findNear(k, nil, now)
}

// findNear is find for the key of a packet of which it may be known where it is.
func (t *Table) findNear(k *key, n *Near, now int64) (h handle, dir int, ok bool) {
	var w keyWords
	k.store(&w)
	if r, gen, there := t.index.find(t.arena, t.chain(&w, n), &w); there {
		h, dir = handle{r >> 1, gen}, int(r&1)
		if t.arena.at(h.slot).expires() > now {
			return h, dir, true
		}
		t.expire(h, now)
	}
	if t.parent != nil {
		return t.adopt(k, now)
	}
	return handle{}, 0, false
}

// taken says whether a key belongs to a live connection.
func (t *Table) taken(k *key, now int64) bool {
	_, _, ok := t.find(k, now)
	return ok
}

// touch starts a connection's timeout anew.
func (t *Table) touch(e *entry, d time.Duration, now int64) { e.expires = now + int64(d) }

// place is the two chains of a connection.
type place struct{ forward, back uint32 }

// insertion is what became of a new connection.
type insertion uint8

const (
	inserted     insertion = iota
	forwardTaken           // the same connection was made meanwhile
	replyTaken             // another connection took the reply tuple meanwhile
	chainFull              // a chain is at maxChain
	noCell                 // no cell is free
)

// insert makes e a connection under both keys, at one moment for every lookup,
// unless one of the keys is a connection's already (CT-30).
// near may say where they are.
func (t *Table) insert(e *entry, near *Near, now int64) (handle, insertion) {
	slot := t.arena.alloc()
	if slot == 0 {
		return handle{}, noCell
	}
	c := t.arena.at(slot)
	h := handle{slot, uint32(c.head.Load()) + 1}
	e.setExpendable()
	var words fixedWords
	e.fixedWords(&words)
	c.fill(e, &words)
	// A worker that looks for a victim before the next step finds a cell that is
	// not live, and looks on.
	from, list := t.shares.of(t, e.port), e.list()
	from.move(t.arena, slot, unlisted, list, now)
	fault := t.publish(h, c, &words, near)
	if fault != inserted {
		from.move(t.arena, slot, list, unlisted, now)
		t.arena.release(slot)
		return handle{}, fault
	}
	return h, inserted
}

// publish links a filled cell and makes it live.
func (t *Table) publish(h handle, c *cell, f *fixedWords, near *Near) insertion {
	at, x := t.place(f, near), &t.index
	x.lockPair(at.forward, at.back)
	made := t.linkBoth(h, c, f, at)
	x.unlockPair(at.forward, at.back)
	return made
}

// linkBoth is publish under the stripes.
func (t *Table) linkBoth(h handle, c *cell, f *fixedWords, at place) insertion {
	x := &t.index
	clash, forward := x.search(t.arena, at.forward, f.key(original))
	if clash {
		return forwardTaken
	}
	clash, back := x.search(t.arena, at.back, f.key(reply))
	if clash {
		return replyTaken
	}
	t.counts.probe(max(forward, back) + 1)
	if max(forward, back) >= maxChain {
		return chainFull
	}
	// The reply key first: where both keys are the same, the original
	// direction is found.
	x.link(t.arena, at.back, makeRef(h.slot, reply))
	x.link(t.arena, at.forward, makeRef(h.slot, original))
	c.unlock(h.gen)
	return inserted
}

// condition is what must hold of a connection, which expires at a time, for it to
// be removed. It is asked under the cell's lock.
type condition func(c *cell, expires, now int64) bool

func whatever(*cell, int64, int64) bool { return true }

func expired(_ *cell, expires, now int64) bool { return expires <= now }

// remove ends a connection, if it still is there and the condition holds.
func (t *Table) remove(h handle, when condition, now int64) bool {
	c := t.arena.at(h.slot)
	words := c.fixedWords()
	at := t.place(&words, nil)
	t.index.lockPair(at.forward, at.back)
	gone := t.unpublish(h, at, when, now)
	t.index.unlockPair(at.forward, at.back)
	if gone {
		port := c.port()
		t.arena.release(h.slot)
		t.forget(words.key(original).zone(), port)
	}
	return gone
}

// unpublish is remove under the stripes. When the cell has meanwhile become
// another connection's, at is wrong, and so is the generation.
func (t *Table) unpublish(h handle, at place, when condition, now int64) bool {
	c := t.arena.at(h.slot)
	if !live(uint64(h.gen)) || !c.lock(h.gen) {
		return false
	}
	for ended := false; !ended; {
		expires := c.expires()
		if !when(c, expires, now) {
			c.unlock(h.gen)
			return false
		}
		ended = c.postpone(expires, 0)
	}
	t.index.unlink(t.arena, at.forward, makeRef(h.slot, original))
	t.index.unlink(t.arena, at.back, makeRef(h.slot, reply))
	t.shares.of(t, c.port()).move(t.arena, h.slot, c.list(), unlisted, now)
	t.endAway(c)
	c.unlock(h.gen + 1)
	return true
}

// expire removes a connection whose time has passed.
func (t *Table) expire(h handle, now int64) {
	if t.remove(h, expired, now) {
		t.counts.expired.Add(1)
	}
}

// Flush removes every connection.
func (t *Table) Flush() {
	t.each(func(_ *entry, h handle) { t.remove(h, whatever, 0) })
	t.settleAway()
}

// each calls f with a copy of every connection, expired or not; the copy is
// f's until it returns.
func (t *Table) each(f func(*entry, handle)) {
	var e entry
	for slot := uint32(1); slot < t.arena.top.Load(); slot++ {
		if h, ok := t.arena.read(slot, &e); ok {
			f(&e, h)
		}
	}
}
