package lookup

import (
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/flow"
)

// Entry is an installed flow entry with its counters.
type Entry struct {
	*flow.Entry
	*Counters
	Compiled    []flow.Action // compiled by the caller; nil for a soft entry, whose actions never run
	clauses     *Clauses      // of a soft entry
	seq         uint64        // order of installation
	InstalledAt atomic.Int64  // clock at installation
	Learned     bool          // made by a learn action
	Learner     bool          // has a learn action with delete_learned
}

// Counters has what packets write. An entry shares it with the entry that modifies it, so a packet
// in between is counted.
type Counters struct {
	Slot           uint32 // place in a worker's counters
	Packets, Bytes atomic.Uint64
	Used           atomic.Int64 // clock at the last packet, or at installation
}

// Touch notes the time of a packet, unless a later one was noted.
func (c *Counters) Touch(now int64) {
	for was := c.Used.Load(); was < now && !c.Used.CompareAndSwap(was, now); was = c.Used.Load() {
	}
}

// NewEntry makes an entry that is installed at a time, with counters that no other has had. A soft
// entry has clauses, and a hard one compiled actions.
func NewEntry(e *flow.Entry, cl *Clauses, actions []flow.Action, counters *Counters, seq uint64, now int64) *Entry {
	n := &Entry{Entry: e, clauses: cl, Compiled: actions, Counters: counters, seq: seq}
	n.Slot = lastSlot.Add(1)
	n.InstalledAt.Store(now)
	n.Used.Store(now)
	return n
}

// Inherit takes over the counters and the age of the entry that e modifies.
func (e *Entry) Inherit(old *Entry) {
	e.Counters = old.Counters
	e.InstalledAt.Store(old.InstalledAt.Load())
}

// lastSlot spreads counters over the workers' places.
var lastSlot atomic.Uint32

// Expired reports whether a timeout has passed.
func (e *Entry) Expired(now int64) bool {
	return e.HardTimeout != 0 && now >= e.InstalledAt.Load()+int64(e.HardTimeout)*int64(time.Second) ||
		e.IdleTimeout != 0 && now >= e.Used.Load()+int64(e.IdleTimeout)*int64(time.Second)
}
