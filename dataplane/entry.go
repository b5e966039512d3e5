package dataplane

import (
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// entry is an installed flow entry: what was asked for, and what happened to
// it since.
type entry struct {
	*flow.Entry
	*counters
	actions   []flow.Action // compiled; none of a soft entry, as no packet runs them
	clauses   *clauses      // of a soft entry
	seq       uint64        // order of installation
	installed atomic.Int64  // clock at installation
	learned   bool          // made by a learn action
}

// counters are what packets write. They are shared by an entry and the one that
// modifies it, so that a packet in between is counted.
type counters struct {
	slot           uint32 // which place of a worker's tally
	packets, bytes atomic.Uint64
	used           atomic.Int64 // clock at the last packet, or at installation
}

// usedAt notes that a packet came at a time, unless a later one has come.
func (c *counters) usedAt(now int64) {
	for was := c.used.Load(); was < now && !c.used.CompareAndSwap(was, now); was = c.used.Load() {
	}
}

func newEntry(e *flow.Entry, seq uint64, now int64) *entry {
	return newEntryWith(newClauses(e.Actions), e, seq, now)
}

// newEntryWith is newEntry for an entry whose clauses are known already; nil
// for a hard one.
func newEntryWith(cl *clauses, e *flow.Entry, seq uint64, now int64) *entry {
	n := &entry{Entry: e, clauses: cl, counters: &counters{slot: lastSlot.Add(1)}, seq: seq}
	if cl == nil {
		n.actions = compiled(e.Actions)
	}
	n.installed.Store(now)
	n.used.Store(now)
	return n
}

// inherit keeps the counters and the age of the entry that this one modifies.
func (e *entry) inherit(old *entry) {
	e.counters = old.counters
	e.installed.Store(old.installed.Load())
}

// lastSlot spreads counters over the workers' tallies.
var lastSlot atomic.Uint32

// expired says whether a timeout has passed.
func (e *entry) expired(now int64) bool {
	return e.HardTimeout != 0 && now >= e.installed.Load()+int64(e.HardTimeout)*second ||
		e.IdleTimeout != 0 && now >= e.used.Load()+int64(e.IdleTimeout)*second
}

const second = int64(1e9)
