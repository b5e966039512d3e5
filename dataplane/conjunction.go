package dataplane

import (
	"cmp"
	"slices"

	"github.com/antrail/antrail/flow"
)

// softMatch is a clause entry that matched: its priority and the conjunctions
// it is a clause of.
type softMatch struct {
	priority uint16
	clauses  []flow.Conjunction
}

// clauseSet collects the clauses seen of one conjunction id.
type clauseSet struct {
	id        uint32
	seen, all uint64 // one bit each
}

// lookupScratch is memory that lookups use again and again, so that none
// allocates; each worker has its own.
type lookupScratch struct {
	soft []softMatch
	sets []clauseSet
	none []softMatch
}

// lookupFunc looks a key up among hard and soft entries (classifier.lookup, or
// a table's static and learned classifiers together).
type lookupFunc interface {
	lookup(k *flow.Key, best *entry, soft []softMatch) (*entry, []softMatch)
}

// find is the whole lookup: hard entries, then conjunctions above them. It
// returns nil when nothing matches.
func (s *lookupScratch) find(c lookupFunc, k *flow.Key) *entry {
	var hard *entry
	hard, s.soft = c.lookup(k, nil, s.soft[:0])
	if len(s.soft) == 0 {
		return hard
	}
	slices.SortStableFunc(s.soft, func(a, b softMatch) int { return cmp.Compare(b.priority, a.priority) })
	conjID := flow.FieldByID(flow.ConjID)
	saved := conjID.Get(k)
	defer conjID.Put(k, saved, flow.Ones(32))
	for level := s.soft; len(level) > 0; {
		priority := level[0].priority
		if hard != nil && priority <= hard.Priority {
			break
		}
		n := 0
		for n < len(level) && level[n].priority == priority {
			n++
		}
		for _, set := range s.collect(level[:n]) {
			if set.seen != set.all {
				continue
			}
			conjID.Put(k, flow.Value{Lo: uint64(set.id)}, flow.Ones(32))
			var e *entry
			if e, s.none = c.lookup(k, nil, s.none[:0]); e != nil {
				return e
			}
		}
		level = level[n:]
	}
	return hard
}

// collect gathers the clauses that matched at one priority by their id. Where
// several ids are complete, OpenFlow leaves the choice open; the lowest that
// has an entry wins.
func (s *lookupScratch) collect(matches []softMatch) []clauseSet {
	s.sets = s.sets[:0]
	for _, m := range matches {
		for _, c := range m.clauses {
			s.see(c)
		}
	}
	slices.SortFunc(s.sets, func(a, b clauseSet) int { return cmp.Compare(a.id, b.id) })
	return s.sets
}

func (s *lookupScratch) see(c flow.Conjunction) {
	bit := uint64(1) << (c.Clause - 1)
	for i := range s.sets {
		if s.sets[i].id == c.ID {
			s.sets[i].seen |= bit
			return
		}
	}
	s.sets = append(s.sets, clauseSet{c.ID, bit, 1<<c.N - 1})
}
