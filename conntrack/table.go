// Package conntrack remembers connections: which packets belong together, in
// which direction, in what state, and how NAT translates them.
//
// A connection lives in one zone under two keys, the tuple of its original
// direction and that of its reply direction, NAT included. Track is one ct()
// action: it reads the packet's tuple, finds the connection or begins one,
// runs the protocol's state machine, translates the packet and says in Meta
// what later tables see as ct_state, ct_mark and ct_label. The order of work
// is Open vSwitch's; where its userspace datapath errs, the difference has a
// number (D1 to D11) that the comments and tests name.
//
// Files, in the order a packet meets them: track.go (order of work), read.go
// (tuple and validity), icmp.go (types, quoted packets), tcp.go, sctp.go and
// other.go (state machines), commit.go, nat.go (choosing a tuple), rewrite.go
// (writing it); then slab.go, index.go, hash.go (storage), limits.go,
// sweep.go, scratch.go, dump.go; lost.go is for the time after the table was
// lost.
//
// A Table may be used from any goroutine. It takes its lock once per Track,
// after checksums are verified and before bytes are rewritten. No clock is
// read on the packet path: the caller passes the time, on the same clock as
// Config.Now.
//
// Track on a fragment gives +inv+trk: whoever has fragments collects them in
// Fragments (frag.go) and tracks the whole datagram.
package conntrack

import (
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a Table is made from.
type Config struct {
	// Now is a monotonic clock in nanoseconds; the process's own when nil.
	Now func() int64
	// Timeouts is DefaultTimeouts when zero.
	Timeouts Timeouts
	// Max is how many connections fit, DefaultMax when 0.
	Max int
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
	guard    guard
	secret   secret
	slab     slab
	index    index
	clock    func() int64
	timeouts Timeouts
	reserved []PortRange
	limits   limits
	sweeper  sweeper
	seqCheck bool
	strict   bool
	stats    Stats
	shielded atomic.Pointer[shielded] // of Shield, nil before

	parent   *Table              // of a Scratch
	shadowed map[handle]struct{} // the parent's entries that the Scratch has copied
}

// guard is the lock over the whole table: a type of its own, so that locks by
// stripe can take its place.
type guard struct{ mu sync.Mutex }

func (g *guard) enter() { g.mu.Lock() }
func (g *guard) leave() { g.mu.Unlock() }

// NewTable makes an empty table.
func NewTable(c Config) *Table {
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
	s := secret(c.Seed)
	if s == (secret{}) {
		s = newSecret()
	}
	return &Table{
		secret: s, index: newIndex(c.Max), clock: c.Now, timeouts: c.Timeouts, reserved: c.Reserved,
		limits: newLimits(c.Max), sweeper: sweeper{last: c.Now()}, seqCheck: true, strict: c.StrictWindow,
	}
}

// SetSequenceCheck turns the check of TCP sequence numbers on or off, as
// dpctl/ct-enable-tcp-seq-chk and ct-disable-tcp-seq-chk do. Without it every
// segment counts as inside the window, and every RST as exact.
func (t *Table) SetSequenceCheck(on bool) {
	t.guard.enter()
	defer t.guard.leave()
	t.seqCheck = on
}

// SequenceCheck says whether TCP sequence numbers are checked.
func (t *Table) SequenceCheck() bool {
	t.guard.enter()
	defer t.guard.leave()
	return t.seqCheck
}

// Stats is counters since the table was made, and how full it is.
type Stats struct {
	Entries, Max int
	// Drops is the packets refused, by reason.
	Drops [numDropReasons]uint64
	// OutOfWindow is the TCP segments outside the window (D3).
	OutOfWindow uint64
	// Created and Expired count connections; those that were replaced or
	// flushed are in neither.
	Created, Expired uint64
}

// Stats is the table's counters now.
func (t *Table) Stats() Stats {
	t.guard.enter()
	defer t.guard.leave()
	s := t.stats
	s.Entries, s.Max = t.limits.total, t.limits.max
	return s
}

// find is the live connection of a key and the direction in which the key
// runs. A connection whose time has passed is removed on the way.
func (t *Table) find(k *key, now int64) (slot uint32, dir int, ok bool) {
	hash := t.secret.hash(k, 0)
	if r := t.index.find(&t.slab, hash, k); r != 0 {
		slot, dir = r>>1, int(r&1)
		if t.slab.at(slot).expires > now {
			return slot, dir, true
		}
		t.remove(slot)
		t.stats.Expired++
	}
	if t.parent != nil {
		return t.adopt(k, now)
	}
	return 0, 0, false
}

// taken says whether a key belongs to a live connection.
func (t *Table) taken(k *key, now int64) bool {
	_, _, ok := t.find(k, now)
	return ok
}

// insert makes an entry under both keys, neither of which may be taken.
func (t *Table) insert(forward, back key) (uint32, *entry) {
	slot, e := t.slab.alloc()
	e.keys = [2]key{forward, back}
	t.link(slot)
	t.limits.add(forward.zone, 1)
	return slot, e
}

// link puts an entry into the index, the reply key first: where both keys are
// the same, the original direction is found.
func (t *Table) link(slot uint32) {
	e := t.slab.at(slot)
	for _, dir := range [2]int{reply, original} {
		t.index.link(&t.slab, t.secret.hash(&e.keys[dir], 0), makeRef(slot, dir))
	}
}

// remove ends a connection.
func (t *Table) remove(slot uint32) {
	e := t.slab.at(slot)
	for dir := range e.keys {
		t.index.unlink(&t.slab, t.secret.hash(&e.keys[dir], 0), makeRef(slot, dir))
	}
	t.limits.add(e.keys[original].zone, -1)
	t.slab.release(slot)
}

// touch starts a connection's timeout anew.
func (t *Table) touch(e *entry, d time.Duration, now int64) { e.expires = now + int64(d) }

// Flush removes every connection.
func (t *Table) Flush() {
	t.guard.enter()
	defer t.guard.leave()
	for slot := uint32(1); slot < t.slab.top; slot++ {
		if t.slab.at(slot).live() {
			t.remove(slot)
		}
	}
}
