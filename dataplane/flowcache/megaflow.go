package flowcache

import (
	"slices"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
)

// Megaflow is a part of a walk that depends only on bits of the key. It looks tables up, writes
// constants and goes to other tables, also by resubmit(). It ends before an action that depends
// on more: ct(), a group, learn, an output, or the lookup of a table that has learned entries. A
// packet may replay it if it agrees in all bits that its lookups examined.
//
// Packets with the same visits share one megaflow. It changes only while it is recorded.
type Megaflow struct {
	Visits []Visit
	Writes []KeyWrite    // to the metadata of the key, one for each word
	Sets   []flow.Action // changes of headers, in order: set_field, load and dec_ttl
	TTLs   uint8         // how many of Sets are dec_ttl
	Tuple  bool          // one of Sets is of an address or a port, which conntrack reads
	End    End
	Drop   Noted       // why a packet ends here, unless it is sent somewhere
	Met    *flow.Entry // the entry that the last lookup found; nil for a table-miss
	// Depth is how many resubmit(), each the last action of its list, are open at the end.
	// Deepest is the largest depth of all resubmit() on the way.
	Depth, Deepest int
	MayLearn       bool // it looked up a table that can learn entries and had none

	shape  *shape
	hash   uint64    // key in byHash
	users  int       // entries that use it; 0 if it is in no list
	tables [4]uint64 // bit set of the tables looked up
	void   bool      // a table has changed
	next   guess

	packets, bytes uint64 // of this batch
	pending        *Pending
}

// KeyWrite is bits to write into a word of the key.
type KeyWrite struct {
	Index       int
	Value, Mask uint64
}

// End is where a megaflow stops.
type End struct {
	Rest  []flow.Action // the remaining actions of the last list
	Next  int           // table to look up next, or -1
	Table uint8         // whose entry's list it is
	Entry *flow.Entry
}

// Noted is a drop reason, and the entry that caused it.
type Noted struct {
	Reason telemetry.DropReason
	Table  uint8
	Entry  *flow.Entry
}

// PortsExamined returns the port bits that the mask of the megaflow examines.
func (r *Megaflow) PortsExamined() PortMask { return PortsOf(&r.shape.whole) }

// equal says whether two megaflows are the same apart from their packets. Their writes follow
// from the entries that they met.
func (r *Megaflow) equal(q *Megaflow) bool {
	a, b := &r.End, &q.End
	return r.shape == q.shape && a.Next == b.Next && r.Drop == q.Drop && len(a.Rest) == len(b.Rest) &&
		slices.Equal(r.Visits, q.Visits) && (len(a.Rest) == 0 || &a.Rest[0] == &b.Rest[0])
}

// invalidate makes a megaflow void: no packet replays it.
func (r *Megaflow) invalidate() {
	if !r.void {
		r.void = true
		r.shape.megaflows--
	}
}

// credit counts packets for the megaflow's entries and tables. The last of the packets came at
// now.
func (r *Megaflow) credit(packets, bytes uint64, now int64) { Credit(r.Visits, packets, bytes, now) }

// clone returns a copy of a recorded megaflow that shares nothing with the recording.
func (r *Megaflow) clone(hash uint64) *Megaflow {
	kept := *r
	kept.hash, kept.pending = hash, new(Pending)
	kept.Visits, kept.Sets, kept.Writes = slices.Clone(r.Visits), slices.Clone(r.Sets), mergeWrites(r.Writes)
	return &kept
}

// mergeWrites merges writes to one for each word.
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

// remembered is the entry of a megaflow: packets with its words replay it. It has no pointers.
type remembered struct {
	slot
	run   uint32 // index into Megaflows.list
	words [megaflowWords]uint64
}

// matches says whether an entry matches a key.
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
