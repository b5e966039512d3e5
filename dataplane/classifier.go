package dataplane

import (
	"cmp"
	"slices"

	"github.com/antrail/antrail/flow"
)

// A classifier finds the flow entry of highest priority that matches a key.
//
// What it is: entries that have the same mask share a subtable, and a subtable
// is a hash table over the key's masked words, so a lookup costs one probe per
// distinct mask and stops as soon as no later subtable can hold a higher
// priority (tuple space search, as in Open vSwitch's lib/classifier).
//
// Conjunctive matches: an entry with conjunction actions is a clause ("soft").
// When clauses of more than the best plain ("hard") priority match, the lookup
// tries, from the highest priority down, whether all clauses of one id are
// there, and then looks up again with conj_id set to that id, clauses left out
// (ovs-fields(7), CONJUNCTIVE MATCH FIELDS).
//
// Threads: insert and remove need a lock of the caller's; find only reads. A
// table's static classifier is built once and never changes; only the learned
// one lives under a lock.
type classifier struct {
	subtables []*subtable // by highest priority, falling
}

// wordMask is one 64-bit word of the key that a subtable looks at.
type wordMask struct {
	index uint8
	mask  uint64
}

// subtable holds the entries of one mask.
type subtable struct {
	id      flow.Key
	words   []wordMask
	highest uint16
	rows    map[uint64][]row // by hash of the masked words; rows by priority, falling
}

// row is an entry in its subtable.
type row struct {
	values  []uint64 // masked words, in the order of subtable.words
	entry   *entry
	clauses []flow.Conjunction // of a soft entry
}

// newClassifier builds the classifier of a table.
func newClassifier(entries []*entry) *classifier {
	c := &classifier{}
	index := make(map[flow.Key]*subtable)
	for _, e := range entries {
		st := index[e.Match.Mask]
		if st == nil {
			st = newSubtable(&e.Match.Mask)
			index[e.Match.Mask] = st
			c.subtables = append(c.subtables, st)
		}
		st.insert(e)
	}
	c.sort()
	return c
}

func newSubtable(mask *flow.Key) *subtable {
	st := &subtable{id: *mask, rows: make(map[uint64][]row)}
	for i := range flow.KeyWords {
		if m := mask.Word(i); m != 0 {
			st.words = append(st.words, wordMask{uint8(i), m})
		}
	}
	return st
}

func (c *classifier) sort() {
	slices.SortStableFunc(c.subtables, func(a, b *subtable) int { return cmp.Compare(b.highest, a.highest) })
}

// insert adds an entry; the caller has removed one of the same identity.
func (c *classifier) insert(e *entry) {
	for _, st := range c.subtables {
		if st.id == e.Match.Mask {
			st.insert(e)
			c.sort()
			return
		}
	}
	st := newSubtable(&e.Match.Mask)
	st.insert(e)
	c.subtables = append(c.subtables, st)
	c.sort()
}

// remove takes an entry out.
func (c *classifier) remove(e *entry) {
	for i, st := range c.subtables {
		if st.id != e.Match.Mask {
			continue
		}
		st.remove(e)
		if len(st.rows) == 0 {
			c.subtables = append(c.subtables[:i], c.subtables[i+1:]...)
		}
		c.sort()
		return
	}
}

func (st *subtable) insert(e *entry) {
	r := row{entry: e, clauses: clausesOf(e.Actions)}
	h := uint64(hashSeed)
	for _, w := range st.words {
		v := e.Match.Value.Word(int(w.index))
		r.values = append(r.values, v)
		h = mix(h, v)
	}
	rows := append(st.rows[h], r)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.entry.Priority, a.entry.Priority) })
	st.rows[h] = rows
	st.highest = max(st.highest, e.Priority)
}

func (st *subtable) remove(e *entry) {
	st.highest = 0
	for h, rows := range st.rows {
		kept := rows[:0]
		for _, r := range rows {
			if r.entry != e {
				kept = append(kept, r)
				st.highest = max(st.highest, r.entry.Priority)
			}
		}
		if len(kept) == 0 {
			delete(st.rows, h)
			continue
		}
		st.rows[h] = kept
	}
}

// clausesOf returns the conjunction actions of a soft entry, nil for a hard one.
func clausesOf(actions []flow.Action) []flow.Conjunction {
	var cs []flow.Conjunction
	for _, a := range actions {
		if c, ok := a.(flow.Conjunction); ok {
			cs = append(cs, c)
		}
	}
	return cs
}

// find returns the rows of the subtable that can match the key, by hash.
func (st *subtable) find(k *flow.Key) []row {
	h := uint64(hashSeed)
	for _, w := range st.words {
		h = mix(h, k.Word(int(w.index))&w.mask)
	}
	return st.rows[h]
}

// matches says whether a row, found by its hash, has the key's values.
func (st *subtable) matches(r *row, k *flow.Key) bool {
	for i, w := range st.words {
		if k.Word(int(w.index))&w.mask != r.values[i] {
			return false
		}
	}
	return true
}

// lookup gives the best hard entry, better than best, and appends to soft the
// matching clauses that stand above it. Clauses below may be appended too.
func (c *classifier) lookup(k *flow.Key, best *entry, soft []softMatch) (*entry, []softMatch) {
	for _, st := range c.subtables {
		if best != nil && st.highest < best.Priority {
			break
		}
		rows := st.find(k)
		for i := range rows {
			r := &rows[i]
			if best != nil && r.entry.Priority < best.Priority {
				break
			}
			if !st.matches(r, k) {
				continue
			}
			if r.clauses != nil {
				soft = append(soft, softMatch{r.entry.Priority, r.clauses})
			} else if best == nil || r.entry.Priority > best.Priority || r.entry.seq > best.seq {
				best = r.entry
			}
		}
	}
	return best, soft
}

const hashSeed = 0x9e3779b97f4a7c15

// mix folds one word into a hash: a multiply by an odd constant, high bits
// folded down.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0xff51afd7ed558ccd
	return h ^ h>>32
}
