package flowcache

import (
	"slices"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// Megaflow is a part of a walk that depends on bits of the key alone. It looks tables up,
// writes constants and goes to other tables, also by resubmit(). It ends before an action
// that depends on more: ct(), a group, learn, an output, or the lookup of a table that
// has learned entries. All packets that agree in the bits that its lookups examined may
// replay it.
//
// Megaflows are shared: all packets with the same visits have one. It changes only
// while it is recorded.
type Megaflow struct {
	Visits []Visit
	Writes []KeyWrite    // to the metadata of the key, one for each word
	Sets   []flow.Action // changes of headers, in order: set_field, load and dec_ttl
	TTLs   uint8         // how many of Sets are dec_ttl
	Tuple  bool          // one of Sets is of an address or a port, which conntrack reads
	End    End
	Drop   Noted       // why a packet goes nowhere from here, unless it is sent all the same
	Met    *flow.Entry // what the last lookup gave; nil for a table-miss
	// Depth is how many resubmit(), each the last action of its list, are open at the
	// end. Deepest counts the others too, at their most.
	Depth, Deepest int
	MayLearn       bool // it looked up a table that can learn entries, and had none

	shape  *shape
	hash   uint64    // by which it is found again
	users  int       // entries; 0 when the store has dropped it
	tables [4]uint64 // bit set of those looked up
	void   bool      // a table has changed
	next   guess

	packets, bytes uint64 // of this batch
	pending        *Pending
}

// KeyWrite is bits that are written into a word of the key.
type KeyWrite struct {
	Index       int
	Value, Mask uint64
}

// End is where a megaflow stops.
type End struct {
	Rest  []flow.Action // of the last list of actions, to be run
	Next  int           // table to be looked up, or -1
	Table uint8         // whose entry's list that is
	Entry *flow.Entry
}

// Noted is a reason to drop a packet, and the entry that gave it.
type Noted struct {
	Reason telemetry.DropReason
	Table  uint8
	Entry  *flow.Entry
}

// PortsExamined returns the port bits that the lookups of all packets with the
// megaflow's mask examine.
func (r *Megaflow) PortsExamined() PortMask { return PortsOf(&r.shape.whole) }

// equal says whether two megaflows are the same but for their packets. What they write
// follows from the entries that they met.
func (r *Megaflow) equal(q *Megaflow) bool {
	a, b := &r.End, &q.End
	return r.shape == q.shape && a.Next == b.Next && r.Drop == q.Drop && len(a.Rest) == len(b.Rest) &&
		slices.Equal(r.Visits, q.Visits) && (len(a.Rest) == 0 || &a.Rest[0] == &b.Rest[0])
}

// invalidate makes a megaflow one that no packet replays.
func (r *Megaflow) invalidate() {
	if !r.void {
		r.void = true
		r.shape.megaflows--
	}
}

// credit counts packets, the last of which came at now, for the megaflow's entries and
// tables.
func (r *Megaflow) credit(packets, bytes uint64, now int64) { Credit(r.Visits, packets, bytes, now) }

// clone returns a copy of a recorded megaflow that shares nothing with the recording.
func (r *Megaflow) clone(hash uint64) *Megaflow {
	kept := *r
	kept.hash, kept.pending = hash, new(Pending)
	kept.Visits, kept.Sets, kept.Writes = slices.Clone(r.Visits), slices.Clone(r.Sets), mergeWrites(r.Writes)
	return &kept
}

// mergeWrites returns writes with one for each word.
func mergeWrites(writes []KeyWrite) (all []KeyWrite) {
	for _, w := range writes {
		i := slices.IndexFunc(all, func(m KeyWrite) bool { return m.Index == w.Index })
		if i < 0 {
			all = append(all, w)
			continue
		}
		all[i].Value = all[i].Value&^w.Mask | w.Value
		all[i].Mask |= w.Mask
	}
	return all
}

// remembered is that packets with such words replay a megaflow. It has no pointers.
type remembered struct {
	slot
	run   uint32 // index into Megaflows.list
	words [megaflowWords]uint64
}

// matches says whether an entry is of packets with such a key.
func (e *remembered) matches(mask []lookup.WordMask, k *flow.Key) bool {
	words := e.words[:len(mask)]
	for i := range words {
		if m := &mask[i]; k.Word(int(m.Index))&m.Mask != words[i] {
			return false
		}
	}
	return true
}

// has says whether an entry has these words.
func (e *remembered) has(words []uint64) bool {
	different := uint64(0)
	for i, w := range words {
		different |= e.words[i] ^ w
	}
	return different == 0
}
