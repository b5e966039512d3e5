package conntrack

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
)

// Config is the arguments of NewTable.
type Config struct {
	// Now is a monotonic clock in nanoseconds. nil means the clock of the process.
	Now func() int64
	// Timeouts is DefaultTimeouts if zero.
	Timeouts proto.Timeouts
	// Max is how many connections may exist. 0 means DefaultMax.
	Max int
	// Capacity is the upper limit of SetMax. It is at least Max. The table allocates memory for
	// all of them at once, 208 bytes per connection.
	Capacity int
	// NewRate is how many connections a port may begin in a second, after a burst of two
	// seconds' worth (CT-39). 0 means DefaultNewRate, a negative number means no limit.
	NewRate int
	// SharedPorts are ports that many senders share: the tunnel and the gateway. The share of
	// each is as large as that of all other ports together (CT-47).
	SharedPorts []uint32
	// Seed makes the hash, and so every choice of NAT, repeatable in tests. If it is zero, the
	// table draws a secret.
	Seed [2]uint64
	// StrictWindow makes TCP data outside the window +inv. Otherwise that data passes without
	// effect (D3).
	StrictWindow bool
	// Reserved is the ports of the Node that source NAT never uses: the NodePort range and the
	// Node's own listeners.
	Reserved []PortRange
}

// PortRange is ports Min to Max, both included.
type PortRange struct{ Min, Max uint16 }

// Table is a connection table.
type Table struct {
	secret   tuple.Secret
	chains   tuple.ChainSecret
	arena    *store.Arena
	index    store.Index
	clock    func() int64
	machine  proto.Machine
	reserved []PortRange
	limits   limits
	shares   shares
	sweeper  sweeper
	counts   counts
	strict   bool                     // Config.StrictWindow
	shielded atomic.Pointer[shielded] // set by Shield, nil before

	offloads []OffloadWords // set by ShareOffload, nil before
	settle   func()         // set by ShareOffload
	ended    atomic.Bool    // offloaded connections have ended since settle was called

	parent   *Table                    // of a Scratch
	shadowed map[store.Handle]struct{} // the parent's entries that the Scratch has copied
}

// withDefaults is the configuration with the defaults for fields that are zero.
func (c Config) withDefaults() Config {
	if c.Now == nil {
		start := time.Now()
		c.Now = func() int64 { return int64(time.Since(start)) }
	}
	c.Timeouts = cmp.Or(c.Timeouts, proto.DefaultTimeouts())
	c.Max = cmp.Or(c.Max, DefaultMax())
	c.Capacity = max(c.Max, c.Capacity)
	if c.Seed == [2]uint64{} {
		c.Seed = tuple.NewSecret()
	}
	return c
}

// NewTable makes an empty table in the process's own memory.
func NewTable(c Config) *Table {
	c = c.withDefaults()
	return newTable(&c, store.NewArena(c.Capacity))
}

// newTable makes a table over an arena. c is complete.
func newTable(c *Config, a *store.Arena) *Table {
	t := &Table{
		secret: c.Seed, chains: tuple.Secret(c.Seed).Chains(), arena: a, index: store.NewIndex(a.Capacity()), clock: c.Now,
		reserved: c.Reserved, strict: c.StrictWindow,
	}
	t.limits.max.Store(int64(c.Max))
	t.SetNewRate(c.NewRate)
	for _, port := range c.SharedPorts {
		t.shares.ofPort(t, port).many = true
	}
	t.sweeper.last.Store(c.Now())
	t.machine.Timeouts = c.Timeouts
	t.machine.SeqCheck.Store(true)
	return t
}

// SetSequenceCheck turns the check of TCP sequence numbers on or off, as
// dpctl/ct-enable-tcp-seq-chk and ct-disable-tcp-seq-chk do. Without the check every segment
// counts as inside the window, and every RST as exact.
func (t *Table) SetSequenceCheck(on bool) { t.machine.SeqCheck.Store(on) }

// find is the live connection of a key, and the direction of the key. If the connection has
// expired, find removes it. n may hold the key's place.
func (t *Table) find(k *tuple.Key, n *Near, now int64) (h store.Handle, dir int, ok bool) {
	var w tuple.Words
	k.Store(&w)
	if h, dir, ok = t.index.Find(t.arena, t.chain(&w, n), &w); ok {
		if t.arena.At(h.Slot).Expires() > now {
			return h, dir, true
		}
		t.expire(h, now)
	}
	if t.parent != nil {
		return t.adopt(k, now)
	}
	return store.Handle{}, 0, false
}

// taken says whether a key belongs to a live connection.
func (t *Table) taken(k *tuple.Key, now int64) bool {
	_, _, ok := t.find(k, nil, now)
	return ok
}

// place is the two chains of a connection.
type place struct{ forward, back uint32 }

// insertion is the result of inserting a connection.
type insertion uint8

const (
	inserted     insertion = iota
	forwardTaken           // another worker has made the same connection
	replyTaken             // another connection has the reply tuple
	chainFull              // a chain has store.MaxChain references
	noCell                 // no cell is free
)

// insert inserts e under both keys, at the same moment for every lookup. It fails if another
// connection has one of the keys (CT-30). from is the port's share, and near may hold the keys'
// places.
func (t *Table) insert(e *store.Entry, from *portShare, near *Near, now int64) (store.Handle, insertion) {
	slot := t.arena.Alloc()
	if slot == 0 {
		return store.Handle{}, noCell
	}
	c := t.arena.At(slot)
	h := store.Handle{Slot: slot, Gen: uint32(c.Head()) + 1}
	setExpendable(e)
	var words store.FixedWords
	e.FixedWords(&words)
	c.Fill(e, &words)
	// A worker that searches for a victim before the next step finds a cell that is not live,
	// and skips it.
	list := listOf(e)
	from.move(t.arena, slot, unlisted, list, now)
	at, x := t.place(&words, near), &t.index
	x.LockPair(at.forward, at.back)
	fault := t.linkBoth(h, c, &words, at)
	x.UnlockPair(at.forward, at.back)
	if fault != inserted {
		from.move(t.arena, slot, list, unlisted, now)
		t.arena.Release(slot)
		return store.Handle{}, fault
	}
	return h, inserted
}

// linkBoth links a filled cell and makes it live, under the locks of both chains.
func (t *Table) linkBoth(h store.Handle, c *store.Cell, f *store.FixedWords, at place) insertion {
	x := &t.index
	clash, forward := x.Search(t.arena, at.forward, f.Key(tuple.Original))
	if clash {
		return forwardTaken
	}
	clash, back := x.Search(t.arena, at.back, f.Key(tuple.Reply))
	if clash {
		return replyTaken
	}
	t.counts.probe(max(forward, back) + 1)
	if max(forward, back) >= store.MaxChain {
		return chainFull
	}
	// The reply key comes first. So if both keys are equal, a lookup finds the original
	// direction.
	x.Link(t.arena, at.back, h.Slot, tuple.Reply)
	x.Link(t.arena, at.forward, h.Slot, tuple.Original)
	c.Unlock(h.Gen)
	return inserted
}

// condition says whether a connection, with this expiry, may be removed. It runs under the
// cell's lock.
type condition func(c *store.Cell, expires, now int64) bool

func whatever(*store.Cell, int64, int64) bool { return true }

func expired(_ *store.Cell, expires, now int64) bool { return expires <= now }

// remove ends a connection if it still exists and the condition holds.
func (t *Table) remove(h store.Handle, when condition, now int64) bool {
	c := t.arena.At(h.Slot)
	words := c.FixedWords()
	at := t.place(&words, nil)
	t.index.LockPair(at.forward, at.back)
	gone := t.unpublish(h, at, when, now)
	t.index.UnlockPair(at.forward, at.back)
	if gone {
		from := t.shares.ofPort(t, c.Port())
		t.arena.Release(h.Slot)
		t.uncount(words.Key(tuple.Original).Zone(), from)
	}
	return gone
}

// unpublish is remove under the locks of both chains. If another connection now has the cell, at
// is wrong. But then the generation is wrong too, and unpublish does nothing.
func (t *Table) unpublish(h store.Handle, at place, when condition, now int64) bool {
	c := t.arena.At(h.Slot)
	if !store.Live(uint64(h.Gen)) || !c.LockIf(h.Gen) {
		return false
	}
	for ended := false; !ended; {
		expires := c.Expires()
		if !when(c, expires, now) {
			c.Unlock(h.Gen)
			return false
		}
		ended = c.Postpone(expires, 0)
	}
	t.index.Unlink(t.arena, at.forward, h.Slot, tuple.Original)
	t.index.Unlink(t.arena, at.back, h.Slot, tuple.Reply)
	t.shares.ofPort(t, c.Port()).move(t.arena, h.Slot, listOfCell(c), unlisted, now)
	t.withdrawOffload(c)
	c.Unlock(h.Gen + 1)
	return true
}

// expire removes a connection if it has expired.
func (t *Table) expire(h store.Handle, now int64) {
	if t.remove(h, expired, now) {
		t.counts.expired.Add(1)
	}
}

// Flush removes every connection.
func (t *Table) Flush() {
	t.each(func(_ *store.Entry, h store.Handle) { t.remove(h, whatever, 0) })
	t.settleOffload()
}

// each calls f with a copy of every connection, expired or not. The next call overwrites the
// copy.
func (t *Table) each(f func(*store.Entry, store.Handle)) {
	var e store.Entry
	for slot := uint32(1); slot < t.arena.End(); slot++ {
		if h, ok := t.arena.Read(slot, &e); ok {
			f(&e, h)
		}
	}
}
