package lookup

import (
	"cmp"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Classifier finds the entry of highest priority that matches a key.
//
// Entries with the same mask share a subtable (subtable.go). A lookup probes subtables in the
// order of their highest priority, and stops when no later one can have a better entry. This is
// tuple space search, as in Open vSwitch's lib/classifier. Three things keep the number of probes
// below the number of masks:
//
//   - A subtable first compares the words in which all its entries agree. One comparison rules out
//     most subtables that do not match.
//   - Among subtables that differ in a prefix length, only those are probed whose prefix length
//     matches the packet's address (trie.go, gates.go). So many prefix lengths cost only the
//     packets that match them.
//   - Entries with conj_id are probed only after a conjunction is complete.
//
// An entry with conjunction actions is a clause ("soft"), any other is "hard" (ovs-fields(7)). A
// lookup returns the best hard entry and all clauses above it. conjunction.go resolves the
// clauses.
//
// Lookups only read and take no lock. A published Classifier is immutable, except for learned
// entries (insertLive). A bundle, or a packet that learns (learned.go), makes an edited copy that
// shares everything unchanged.
type Classifier struct {
	subtables []*subtable           // by highest priority, falling
	probes    []probe               // of the subtables, for lookups
	gates     gates                 // of the probes that are gated
	tries     [numPrefixFields]trie // of prefixes shorter than their field, for lookups
	values    [numPrefixFields]trie // of all prefixes, for examined bits
	entries   int
	clauses   int  // soft entries among them
	timed     int  // entries with a timeout among them
	learned   bool // values stay empty (learned.go)
	edit      *edit
}

// probe is the part of a subtable that a lookup reads before it searches the subtable.
type probe struct {
	*subtable
	highest       uint16
	byConjunction bool
	gated         bool // the trie of gate can rule it out
	gate          prefix
}

// edit marks the nodes that one change has made and may write. Nodes of another edit are shared
// with classifiers that packets read. A change copies them first.
type edit struct{ _ byte }

// editable returns a copy for insert and remove, which shares everything unchanged with c. The
// caller calls Sort before the first lookup.
func (c *Classifier) editable() *Classifier {
	n := *c
	n.edit = new(edit)
	n.subtables = slices.Clone(c.subtables)
	for i := range n.tries {
		n.tries[i], n.values[i] = c.tries[i].editable(), c.values[i].editable()
	}
	return &n
}

// Sort sorts the subtables in the order in which lookup probes them.
func (c *Classifier) Sort() {
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

// worthTrie is the number of subtables with a prefix of a field from which the field's trie is
// cheaper than probing them.
const worthTrie = 3

// subtable returns the index of a mask's subtable, or -1.
func (c *Classifier) subtable(mask flow.Minimask) int {
	return slices.IndexFunc(c.subtables, func(st *subtable) bool { return st.minimask == mask })
}

// own returns the subtable at an index. It copies it first if another classifier shares it.
func (c *Classifier) own(i int) *subtable {
	if st := c.subtables[i]; st.edit != c.edit {
		c.subtables[i] = st.editable(c.edit)
	}
	return c.subtables[i]
}

// Expect announces entries of a mask that insert will add, so that their subtable gets its final
// size at once.
func (c *Classifier) Expect(mask flow.Minimask, entries int) {
	if i := c.subtable(mask); i >= 0 {
		st := c.own(i)
		st.expected = st.rows + entries
	} else {
		st := newSubtable(mask, c.edit)
		st.expected = entries
		c.subtables = append(c.subtables, st)
	}
}

// insert adds an entry. It replaces and returns an entry with the same identity.
func (c *Classifier) insert(e *Entry) *Entry {
	mask, value := e.Match.Mask(), e.Match.Value()
	i := c.subtable(mask)
	old := c.installedIn(i, &value, e.Priority)
	if old != nil {
		c.remove(old)
		i = c.subtable(mask) // its last entry may have been removed
	}
	if i < 0 {
		i = len(c.subtables)
		c.subtables = append(c.subtables, newSubtable(mask, c.edit))
	}
	st := c.own(i)
	st.insert(newRow(e), &value)
	c.count(e, 1)
	c.plant(st, &value, (*trie).insert)
	return old
}

// insertLive inserts an entry of a new identity while lookups read the classifier. If more than
// one chunk of a subtable would have to change, it does nothing and returns false.
func (c *Classifier) insertLive(e *Entry) bool {
	i, value := c.subtable(e.Match.Mask()), e.Match.Value()
	if i < 0 || slices.ContainsFunc(c.subtables[i].prefixes, func(p prefix) bool { return !p.whole() }) || !c.subtables[i].putLive(newRow(e), &value) {
		return false
	}
	c.count(e, 1)
	return true
}

// remove removes an entry, if it is present.
func (c *Classifier) remove(e *Entry) {
	i, value := c.subtable(e.Match.Mask()), e.Match.Value()
	if c.installedIn(i, &value, e.Priority) != e {
		return
	}
	st := c.own(i)
	st.remove(e, &value)
	c.count(e, -1)
	c.plant(st, &value, (*trie).remove)
	if st.rows == 0 {
		c.subtables = slices.Delete(c.subtables, i, i+1)
	}
}

// plant updates the tries for an added or removed entry of a value.
func (c *Classifier) plant(st *subtable, value *flow.Key, change func(*trie, aligned, uint8)) {
	for _, p := range st.prefixes {
		v := p.of(value)
		if !c.learned {
			change(&c.values[p.field], v, p.bits)
		}
		if !p.whole() {
			change(&c.tries[p.field], v, p.bits)
		}
	}
}

// count adds n to the counts that include e.
func (c *Classifier) count(e *Entry, n int) {
	c.entries += n
	if e.clauses != nil {
		c.clauses += n
	}
	if e.IdleTimeout|e.HardTimeout != 0 {
		c.timed += n
	}
}

// Size is the number of entries.
func (c *Classifier) Size() int { return c.entries }

// Masks is the number of different masks.
func (c *Classifier) Masks() int { return len(c.subtables) }

// HasTimeouts reports whether an entry has a timeout.
func (c *Classifier) HasTimeouts() bool { return c.timed > 0 }

// Installed finds the entry of a match and priority.
func (c *Classifier) Installed(m flow.Minimatch, priority uint16) *Entry {
	value := m.Value()
	return c.installedIn(c.subtable(m.Mask()), &value, priority)
}

// installedIn is Installed for a value in the subtable at index i; nil if i is -1.
func (c *Classifier) installedIn(i int, value *flow.Key, priority uint16) *Entry {
	if i < 0 {
		return nil
	}
	for _, r := range c.subtables[i].find(value) {
		if r.priority == priority {
			return r.entry
		}
	}
	return nil
}

// All visits every entry, in undefined order.
func (c *Classifier) All(visit func(*Entry)) {
	for _, st := range c.subtables {
		st.all(func(r *row) { visit(r.entry) })
	}
}

// List returns the entries in the order of dumps.
func (c *Classifier) List() []*Entry {
	all := make([]*Entry, 0, c.entries)
	c.All(func(e *Entry) { all = append(all, e) })
	slices.SortFunc(all, byPriority)
	return all
}

// lookup returns the best hard entry that is better than best. It appends to s.soft the matching
// clauses above it, by match, and possibly clauses below. It leaves out entries with conj_id if
// the key has none.
func (c *Classifier) lookup(k *flow.Key, best *row, s *Scratch) *row {
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
		if p.gated && s.Examined != nil {
			if !s.lengths.of(p.gate.field, &c.tries[p.gate.field], k).has(p.gate.bits) {
				s.Examined.examineMiss(c, p.subtable, k)
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
		rows := p.find(k)
		if s.Examined != nil {
			s.Examined.find(c, p.subtable, len(rows) > 0, k)
		}
		if len(rows) == 0 {
			continue
		}
		if r := &rows[0]; r.clauses != nil && (best == nil || r.priority >= best.priority) {
			s.soft = append(s.soft, rows)
		}
		if hard := firstHard(rows); hard != nil && hard.betterThan(best) {
			best = hard
		}
	}
	return best
}

// completed returns the best hard entry with conj_id that is better than best, for a key with the
// id of a conjunction.
func (c *Classifier) completed(k *flow.Key, best *row, s *Scratch) *row {
	for _, st := range c.subtables {
		if best != nil && st.highest < best.priority {
			break
		}
		if !st.namesID {
			continue
		}
		rows := st.find(k)
		if s.Examined != nil {
			s.Examined.find(c, st, len(rows) > 0, k)
		}
		if len(rows) == 0 {
			continue
		}
		if hard := firstHard(rows); hard != nil && hard.betterThan(best) {
			best = hard
		}
	}
	return best
}

// byPriority is the order of a table's entries.
func byPriority(a, b *Entry) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.seq, b.seq))
}
