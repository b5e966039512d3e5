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
	namesID     bool          // its match includes conj_id
}

// Counters has the fields that packets write. An entry shares it with the entry that replaces it,
// so packets count during the change.
type Counters struct {
	Slot           uint32 // place in a worker's counters
	Packets, Bytes atomic.Uint64
	Used           atomic.Int64 // clock at the last packet, or at installation
}

// Touch records the time of a packet, unless a later time is recorded.
func (c *Counters) Touch(now int64) {
	for was := c.Used.Load(); was < now && !c.Used.CompareAndSwap(was, now); was = c.Used.Load() {
	}
}

// NewEntry makes an entry installed at now. A soft entry has clauses, and a hard one compiled
// actions.
func NewEntry(e *flow.Entry, cl *Clauses, actions []flow.Action, seq uint64, now int64) *Entry {
	return (&Room{entries: make([]Entry, 1), counters: make([]Counters, 1)}).NewEntry(e, cl, actions, seq, now)
}

// Room is memory for new entries. It is allocated for several at a time, because the garbage
// collector visits each object. All of them stay in memory as long as one is in use.
type Room struct {
	entries  []Entry
	counters []Counters
}

// The numbers of entries and counters that a Room allocates as one object. There are few entries
// in one, because an entry that stays also keeps the others of its object, and the text that they
// came from.
const (
	entriesTogether  = 6
	countersTogether = 32
)

// NewEntry is the function NewEntry, with memory from the room.
func (r *Room) NewEntry(e *flow.Entry, cl *Clauses, actions []flow.Action, seq uint64, now int64) *Entry {
	if len(r.entries) == 0 {
		r.entries = make([]Entry, entriesTogether)
	}
	if len(r.counters) == 0 {
		r.counters = make([]Counters, countersTogether)
	}
	n := &r.entries[0]
	n.Entry, n.clauses, n.Compiled, n.Counters, n.seq = e, cl, actions, &r.counters[0], seq
	r.entries, r.counters = r.entries[1:], r.counters[1:]
	_, id := e.Match.Get(flow.ConjID)
	n.namesID = !id.IsZero()
	n.Slot = lastSlot.Add(1)
	n.InstalledAt.Store(now)
	n.Used.Store(now)
	return n
}

// Inherit takes over the counters and the installation time of the entry that e replaces.
func (e *Entry) Inherit(old *Entry) {
	e.Counters = old.Counters
	e.InstalledAt.Store(old.InstalledAt.Load())
}

// lastSlot spreads counters over the slots of the workers' counts.
var lastSlot atomic.Uint32

// Expired reports whether a timeout has passed.
func (e *Entry) Expired(now int64) bool {
	return e.HardExpired(now) ||
		e.IdleTimeout != 0 && now >= e.Used.Load()+int64(e.IdleTimeout)*int64(time.Second)
}

// HardExpired reports whether the hard timeout has passed.
func (e *Entry) HardExpired(now int64) bool {
	return e.HardTimeout != 0 && now >= e.InstalledAt.Load()+int64(e.HardTimeout)*int64(time.Second)
}
