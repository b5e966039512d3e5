package conntrack

import (
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
)

// A Scratch is a table over another one, for traced packets. It finds the connections of
// the other table, and copies each before it changes it. So a traced packet gets the real
// result and changes nothing. A Scratch has the secret of the other table, so NAT makes the
// same choices.

// scratchSize is how many connections a Scratch has room for. One packet needs only a few.
const scratchSize = 64

// Scratch is a table with the connections of t, which it copies when it first finds them. It
// changes none of t. It is for a few packets. It is cheap to make, and never frees a copy.
func (t *Table) Scratch() *Table {
	s := newTable(&Config{
		Now: t.clock, Timeouts: t.machine.Timeouts, Seed: t.secret, StrictWindow: t.strict, Reserved: t.reserved,
	}, store.NewArena(scratchSize))
	s.limits.max.Store(t.limits.max.Load())
	s.limits.total.Store(t.limits.total.Load())
	s.limits.byDefault.Store(t.limits.byDefault.Load())
	s.shares.limit.interval.Store(t.shares.limit.interval.Load())
	s.machine.SeqCheck.Store(t.machine.SeqCheck.Load())
	s.parent, s.shadowed = t, map[store.Handle]struct{}{}
	return s
}

// Blank is a table like t for a few packets, without connections and without limits, so that
// every packet begins a connection.
func (t *Table) Blank() *Table {
	return newTable(&Config{
		Now: t.clock, Timeouts: t.machine.Timeouts, Seed: t.secret, StrictWindow: t.strict, Reserved: t.reserved,
		NewRate: -1, Max: scratchSize,
	}, store.NewArena(scratchSize))
}

// adopt copies the parent's live connection of a key. If it was already copied, the copy has
// ended in the Scratch, and adopt reports false.
func (t *Table) adopt(k *tuple.Key, now int64) (h store.Handle, dir int, ok bool) {
	e, from, dir, ok := t.parent.peek(k, now)
	if !ok {
		return store.Handle{}, 0, false
	}
	if _, copied := t.shadowed[from]; copied {
		return store.Handle{}, 0, false
	}
	t.shadowed[from] = struct{}{}
	h, made := t.insert(&e, t.shares.ofPort(t, e.Port), nil, now)
	return h, dir, made == inserted
}

// peek is a copy of the live connection of a key, and its cell. Unlike find it changes nothing.
func (t *Table) peek(k *tuple.Key, now int64) (e store.Entry, at store.Handle, dir int, ok bool) {
	w := k.Words()
	found, dir, ok := t.index.Find(t.arena, t.chain(&w, nil), &w)
	if !ok {
		return store.Entry{}, store.Handle{}, 0, false
	}
	at, ok = t.arena.Read(found.Slot, &e)
	t.fetchWindows(&e)
	e.Flags &^= store.Offloaded
	return e, at, dir, ok && at.Gen == found.Gen && e.Expires > now
}
