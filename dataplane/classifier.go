package dataplane

import (
	"cmp"
	"slices"

	"github.com/antrail/antrail/flow"
)

// A classifier finds the flow entry of highest priority that matches a key.
//
// What it is: entries that have the same mask share a subtable (subtable.go),
// and subtables are asked by the highest priority they hold, so a lookup stops
// as soon as no later one can hold a better entry (tuple space search, as in
// Open vSwitch's lib/classifier). Three things keep the number of probes from
// growing with the number of masks:
//
//   - a subtable first compares the words in which all its entries agree, and
//     most that do not match are left with one comparison;
//   - subtables that differ in the length of a prefix only are asked by the
//     lengths that the packet's own address has (trie.go), and those of others
//     are not even passed (gates.go), so whoever adds prefixes of many lengths
//     makes only those packets dearer that match them;
//   - entries with conj_id are asked only once a conjunction is complete.
//
// Conjunctive matches (ovs-fields(7)): an entry with conjunction actions is a
// clause ("soft"), the others are "hard". A lookup gives the best hard entry
// and all clauses above it; conjunction.go goes on from there.
//
// Threads: lookup only reads, and takes no lock. A published classifier never
// changes: a bundle, or a packet that learns (learned.go), makes an edited one
// (edit) that shares what it does not touch.
type classifier struct {
	subtables []*subtable            // by highest priority, falling
	probes    []probe                // of the subtables
	gates     gates                  // of the probes that are gated
	tries     [numPrefixFields]*trie // of prefixes that are not whole, for lookups
	values    [numPrefixFields]*trie // of all prefixes, for what lookups ask for
	entries   int
	clauses   int  // of the entries, those that are soft
	timed     int  // of the entries, those that have a timeout
	learned   bool // no values are kept (learned.go)
	edit      *edit
}

// probe is what a lookup must know of a subtable before it asks it.
type probe struct {
	*subtable
	highest       uint16
	byConjunction bool
	gated         bool // worth asking the trie of gate first (gates)
	gate          prefix
}

// edit marks what one change has made, and may therefore write to: a node of
// another edit is shared with classifiers that packets read, and is copied
// first.
type edit struct{ _ byte }

// editable is a copy that insert and remove may change, and that shares with c
// what they do not touch. Whoever changes it sorts it before the first lookup.
func (c *classifier) editable() *classifier {
	n := *c
	n.edit = new(edit)
	n.subtables = slices.Clone(c.subtables)
	return &n
}

// sort brings the subtables in the order in which lookup asks them.
func (c *classifier) sort() {
	slices.SortStableFunc(c.subtables, func(a, b *subtable) int { return cmp.Compare(b.highest, a.highest) })
	var prefixed [numPrefixFields]int
	for _, st := range c.subtables {
		for _, p := range st.prefixes {
			if !p.whole() {
				prefixed[p.field]++
			}
		}
	}
	c.probes = make([]probe, len(c.subtables))
	gated := false
	for i, st := range c.subtables {
		c.probes[i] = probe{subtable: st, highest: st.highest, byConjunction: st.byConjunction}
		for _, p := range st.prefixes {
			if !p.whole() && prefixed[p.field] >= worthTrie {
				c.probes[i].gated, c.probes[i].gate = true, p
				gated = true
			}
		}
	}
	if c.gates = (gates{}); gated {
		c.gates = gatesOf(c.probes)
	}
}

// worthTrie is how many subtables must have a prefix of a field before asking
// its trie is cheaper than asking them.
const worthTrie = 3

// subtable finds the subtable of a mask: its place, or -1.
func (c *classifier) subtable(mask *flow.Key) int {
	h := hashMask(mask)
	return slices.IndexFunc(c.subtables, func(st *subtable) bool { return st.maskHash == h && st.mask == *mask })
}

// own is the subtable at a place, copied first if another classifier has it
// too.
func (c *classifier) own(i int) *subtable {
	if st := c.subtables[i]; st.edit != c.edit {
		c.subtables[i] = st.editable(c.edit)
	}
	return c.subtables[i]
}

// expect tells of entries of a mask that insert will add. Their subtable gets its size
// once, and need not grow step by step.
func (c *classifier) expect(mask *flow.Key, entries int) {
	if i := c.subtable(mask); i >= 0 {
		st := c.own(i)
		st.expected = st.rows + entries
	} else {
		st := newSubtable(mask, c.edit)
		st.expected = entries
		c.subtables = append(c.subtables, st)
	}
}

// insert adds an entry, in place of one with the same identity, which it
// returns.
func (c *classifier) insert(e *entry) *entry {
	old := c.installed(&e.Match, e.Priority)
	if old != nil {
		c.remove(old)
	}
	i := c.subtable(&e.Match.Mask)
	if i < 0 {
		i = len(c.subtables)
		c.subtables = append(c.subtables, newSubtable(&e.Match.Mask, c.edit))
	}
	st := c.own(i)
	st.insert(newRow(e, c.edit))
	c.count(e, 1)
	c.plant(st, e, (*trie).insert)
	return old
}

// insertLive is insert of an entry of which no like is there, while lookups read
// the classifier. It reports false, and does nothing, where more than one chunk
// of a subtable would have to change.
func (c *classifier) insertLive(e *entry) bool {
	i := c.subtable(&e.Match.Mask)
	if i < 0 || slices.ContainsFunc(c.subtables[i].prefixes, func(p prefix) bool { return !p.whole() }) || !c.subtables[i].putLive(newRow(e, nil)) {
		return false
	}
	c.count(e, 1)
	return true
}

// remove takes an entry out; one that is not there is no error.
func (c *classifier) remove(e *entry) {
	if c.installed(&e.Match, e.Priority) != e {
		return
	}
	i := c.subtable(&e.Match.Mask)
	st := c.own(i)
	st.remove(e)
	c.count(e, -1)
	c.plant(st, e, (*trie).remove)
	if st.rows == 0 {
		c.subtables = slices.Delete(c.subtables, i, i+1)
	}
}

// plant changes the tries for an entry that comes or goes.
func (c *classifier) plant(st *subtable, e *entry, change func(*trie, aligned, uint8, *edit) *trie) {
	for _, p := range st.prefixes {
		v := p.of(&e.Match.Value)
		if !c.learned {
			c.values[p.field] = change(c.values[p.field], v, p.bits, c.edit)
		}
		if !p.whole() {
			c.tries[p.field] = change(c.tries[p.field], v, p.bits, c.edit)
		}
	}
}

// count keeps the numbers of entries, n more.
func (c *classifier) count(e *entry, n int) {
	c.entries += n
	if e.clauses != nil {
		c.clauses += n
	}
	if e.IdleTimeout|e.HardTimeout != 0 {
		c.timed += n
	}
}

// installed finds the entry of a match and priority.
func (c *classifier) installed(m *flow.Match, priority uint16) *entry {
	i := c.subtable(&m.Mask)
	if i < 0 {
		return nil
	}
	for r := c.subtables[i].find(&m.Value); r != nil; r = r.next {
		if r.priority == priority {
			return r.entry
		}
	}
	return nil
}

// all visits every entry, in no order.
func (c *classifier) all(visit func(*entry)) {
	for _, st := range c.subtables {
		st.all(func(r *row) { visit(r.entry) })
	}
}

// list returns the entries in the order of dumps.
func (c *classifier) list() []*entry {
	all := make([]*entry, 0, c.entries)
	c.all(func(e *entry) { all = append(all, e) })
	slices.SortFunc(all, byPriority)
	return all
}

// lookup gives the best hard entry, better than best, and appends to s.soft the
// matching clauses that stand above it, of each match the first. Clauses below
// may be appended too. Entries with conj_id are left out while the key has none.
func (c *classifier) lookup(k *flow.Key, best *row, s *lookupScratch) *row {
	s.lengths.known = 0
	s.open = s.open[:0]
	complete := k.ConjID() != 0
	for i := 0; i < len(c.probes); i++ {
		p := &c.probes[i]
		if best != nil && p.highest < best.priority {
			break
		}
		if p.byConjunction && !complete {
			continue
		}
		if p.gated && s.asked != nil {
			if !s.lengths.of(p.gate.field, c.tries[p.gate.field], k).has(p.gate.bits) {
				s.asked.missed(c, p.subtable, k)
				continue
			}
		} else if p.gated {
			if len(s.open) == 0 {
				s.open = c.gates.open(s.open, c, k, &s.lengths)
			}
			if next := s.open.next(i); next != i {
				i = next - 1
				continue
			}
		}
		r := p.find(k)
		if s.asked != nil {
			s.asked.find(c, p.subtable, r, k)
		}
		if r == nil {
			continue
		}
		if r.clauses != nil && (best == nil || r.priority >= best.priority) {
			s.soft = append(s.soft, r)
		}
		if r.hard != nil && r.hard.betterThan(best) {
			best = r.hard
		}
	}
	return best
}

// completed gives the best hard entry among those with conj_id, better than
// best, for a key that has a conjunction's id.
func (c *classifier) completed(k *flow.Key, best *row, s *lookupScratch) *row {
	for _, st := range c.subtables {
		if best != nil && st.highest < best.priority {
			break
		}
		if !st.namesID {
			continue
		}
		r := st.find(k)
		if s.asked != nil {
			s.asked.find(c, st, r, k)
		}
		if r != nil && r.hard != nil && r.hard.betterThan(best) {
			best = r.hard
		}
	}
	return best
}

// byPriority is the order of a table's entries.
func byPriority(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.seq, b.seq))
}
