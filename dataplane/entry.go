package dataplane

import (
	"sync/atomic"

	"github.com/antrail/antrail/flow"
)

// entry is an installed flow entry: what was asked for, and what happened to
// it since. Its counters are written by all workers.
type entry struct {
	*flow.Entry
	seq       uint64 // order of installation
	installed int64  // clock at installation
	learned   bool   // made by a learn action
	packets   atomic.Uint64
	bytes     atomic.Uint64
	used      atomic.Int64 // clock at the last packet, or at installation
}

func newEntry(e *flow.Entry, seq uint64, now int64) *entry {
	n := &entry{Entry: e, seq: seq, installed: now}
	n.used.Store(now)
	return n
}

// inherit keeps the counters of the entry that this one modifies.
func (e *entry) inherit(old *entry) {
	e.packets.Store(old.packets.Load())
	e.bytes.Store(old.bytes.Load())
	e.used.Store(old.used.Load())
	e.installed = old.installed
}

// credit counts one packet.
func (e *entry) credit(size int, now int64) {
	e.packets.Add(1)
	e.bytes.Add(uint64(size))
	e.used.Store(now)
}

// expired says whether a timeout has passed.
func (e *entry) expired(now int64) bool {
	return e.HardTimeout != 0 && now >= e.installed+int64(e.HardTimeout)*second ||
		e.IdleTimeout != 0 && now >= e.used.Load()+int64(e.IdleTimeout)*second
}

const second = int64(1e9)
