package dataplane

import (
	"cmp"
	"maps"
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
// table's static classifier never changes: a bundle makes an edited copy that
// shares what it does not touch. Only the learned one lives under a lock.
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
	id         flow.Key
	words      []wordMask
	highest    uint16
	priorities map[uint16]int   // entries by priority
	rows       map[uint64][]row // by hash of the masked words; rows by priority, falling
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
	st := &subtable{id: *mask, priorities: make(map[uint16]int), rows: make(map[uint64][]row)}
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

// edited is the classifier after entries went and others came. The subtables
// that neither touches are shared with this one, which does not change; the
// others are copied first, so that an edit costs what it touches.
func (c *classifier) edited(gone, come []*entry) *classifier {
	n := &classifier{subtables: slices.Clone(c.subtables)}
	mine := make(map[*subtable]bool)
	own := func(mask *flow.Key) {
		for i, st := range n.subtables {
			if st.id == *mask && !mine[st] {
				n.subtables[i] = st.clone()
				mine[n.subtables[i]] = true
			}
		}
	}
	for _, e := range gone {
		own(&e.Match.Mask)
		n.remove(e)
	}
	for _, e := range come {
		own(&e.Match.Mask)
		if st := n.insert(e); st != nil {
			mine[st] = true
		}
	}
	n.sort()
	return n
}

// installed finds the entry of an identity.
func (c *classifier) installed(id *flow.Identity) *entry {
	for _, st := range c.subtables {
		if st.id != id.Match.Mask {
			continue
		}
		rows := st.find(&id.Match.Value)
		for i := range rows {
			if r := &rows[i]; r.entry.Priority == id.Priority && st.matches(r, &id.Match.Value) {
				return r.entry
			}
		}
	}
	return nil
}

// insert adds an entry; the caller has removed one of the same identity, and
// sorts. It returns the subtable when that had to be made.
func (c *classifier) insert(e *entry) *subtable {
	for _, st := range c.subtables {
		if st.id == e.Match.Mask {
			st.insert(e)
			return nil
		}
	}
	st := newSubtable(&e.Match.Mask)
	st.insert(e)
	c.subtables = append(c.subtables, st)
	return st
}

// remove takes an entry out; the caller sorts.
func (c *classifier) remove(e *entry) {
	for i, st := range c.subtables {
		if st.id != e.Match.Mask {
			continue
		}
		st.remove(e)
		if len(st.rows) == 0 {
			c.subtables = append(c.subtables[:i], c.subtables[i+1:]...)
		}
		return
	}
}

// clone is a copy that can be changed; the rows of one hash are never changed
// in place, so they are shared.
func (st *subtable) clone() *subtable {
	n := *st
	n.rows, n.priorities = maps.Clone(st.rows), maps.Clone(st.priorities)
	return &n
}

func (st *subtable) insert(e *entry) {
	r := row{entry: e, clauses: clausesOf(e.Actions)}
	h := uint64(hashSeed)
	for _, w := range st.words {
		v := e.Match.Value.Word(int(w.index))
		r.values = append(r.values, v)
		h = mix(h, v)
	}
	rows := append(slices.Clone(st.rows[h]), r)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.entry.Priority, a.entry.Priority) })
	st.rows[h] = rows
	st.priorities[e.Priority]++
	st.highest = max(st.highest, e.Priority)
}

func (st *subtable) remove(e *entry) {
	h := st.hash(&e.Match.Value)
	var kept []row
	for _, r := range st.rows[h] {
		if r.entry != e {
			kept = append(kept, r)
		}
	}
	st.rows[h] = kept
	if len(kept) == 0 {
		delete(st.rows, h)
	}
	if st.priorities[e.Priority]--; st.priorities[e.Priority] > 0 {
		return
	}
	delete(st.priorities, e.Priority)
	st.highest = 0
	for p := range st.priorities {
		st.highest = max(st.highest, p)
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
func (st *subtable) find(k *flow.Key) []row { return st.rows[st.hash(k)] }

// hash is the hash of the words that the subtable looks at.
func (st *subtable) hash(k *flow.Key) uint64 {
	h := uint64(hashSeed)
	for _, w := range st.words {
		h = mix(h, k.Word(int(w.index))&w.mask)
	}
	return h
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
