package lookup

import (
	"cmp"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Conjunctive matches: from the clauses that match a packet to the entry of the conjunction that
// they complete (ovs-fields(7), CONJUNCTIVE MATCH FIELDS). A rule that lets 10.10.0.26 reach the
// pod at port 0x25 on TCP 80 may be
//
//	priority=100,ip,nw_src=10.10.0.26 actions=conjunction(6,1/3)
//	priority=100,reg1=0x25            actions=conjunction(6,2/3)
//	priority=100,tcp,tp_dst=80        actions=conjunction(6,3/3)
//	priority=100,conj_id=6,ip         actions=output:0x25
//
// The actions of the first three never run. A packet that matches one entry of each clause is
// looked up as if its field conj_id were 6, and matches the fourth.
//
// Clause entries are a policy rule's addresses and ports, and rules share them. If a thousand
// rules name one address, its entry has a thousand ids. So lookups do not collect and count ids.
// Every conjunction has clauses 1 and 2. Among the matching entries, the clause of these two with
// fewer ids names the candidates, in rising order. Each candidate is looked up in the sorted ids
// of the other clauses. So a lookup never meets rules that do not apply to the packet's pod,
// however many there are.

// Clauses is the conjunction actions of one entry.
type Clauses struct {
	actions []flow.Conjunction // by id
	clause  uint8              // of all actions; 0 if they differ
}

// newClauses returns the clauses of an entry's actions. A hard entry has none: nil.
func newClauses(actions []flow.Action) *Clauses {
	if !IsSoft(actions) {
		return nil
	}
	c := &Clauses{}
	c.set(appendClauses(make([]flow.Conjunction, 0, len(actions)), actions))
	return c
}

// set sets c to the clauses of conjunctions, and sorts them. There is at least one.
func (c *Clauses) set(all []flow.Conjunction) {
	*c = Clauses{actions: all, clause: all[0].Clause}
	slices.SortFunc(all, func(a, b flow.Conjunction) int { return cmp.Compare(a.ID, b.ID) })
	if slices.ContainsFunc(all, func(a flow.Conjunction) bool { return a.Clause != c.clause }) {
		c.clause = 0
	}
}

// IsSoft reports whether actions make an entry a clause. A conjunction allows only notes beside
// it, so the first few actions of a long list decide.
func IsSoft(actions []flow.Action) bool {
	return slices.ContainsFunc(actions, func(a flow.Action) bool {
		_, is := a.(flow.Conjunction)
		return is
	})
}

// appendClauses appends the conjunction actions of a soft entry.
func appendClauses(cs []flow.Conjunction, actions []flow.Action) []flow.Conjunction {
	for _, a := range actions {
		if c, ok := a.(flow.Conjunction); ok {
			cs = append(cs, c)
		}
	}
	return cs
}

// of returns which clauses of an id these are, as bits, and all clauses of the conjunction. Both
// are 0 if the id is absent.
func (c *Clauses) of(id uint32) (seen, all uint64) {
	i, found := slices.BinarySearchFunc(c.actions, id, func(a flow.Conjunction, id uint32) int { return cmp.Compare(a.ID, id) })
	if !found {
		return 0, 0
	}
	for ; i < len(c.actions) && c.actions[i].ID == id; i++ {
		seen |= 1 << (c.actions[i].Clause - 1)
		all = 1<<c.actions[i].N - 1
	}
	return seen, all
}

// Scratch is memory that lookups reuse, so that they allocate nothing. Each worker has its own.
type Scratch struct {
	soft       [][]row // the remaining clauses of each match
	level      []*row  // clauses of one priority
	none       [][]row
	lengths    prefixLengths
	open       placeSet                // probes that the prefix lengths leave; empty until a probe is gated
	candidates [2][][]flow.Conjunction // of clauses 1 and 2
	Examined   *Examined               // lookups add the bits that they read; nil if nobody needs them
}

// lookups is the search of a whole lookup: one Classifier, or a Table with two.
type lookups interface {
	lookup(k *flow.Key, best *row, s *Scratch) *row
	completed(k *flow.Key, best *row, s *Scratch) *row
}

// Find is the whole lookup: hard entries, then conjunctions above them. It returns nil if nothing
// matches.
func (s *Scratch) Find(c lookups, k *flow.Key) *Entry {
	s.soft = s.soft[:0]
	hard := c.lookup(k, nil, s)
	if len(s.soft) > 0 {
		hard = s.conjunction(c, k, hard)
	}
	if hard == nil {
		return nil
	}
	return hard.entry
}

// conjunction returns the best entry of a complete conjunction above hard, or hard. It visits the
// clauses of all matches by priority. All clauses of a conjunction have one priority, and there
// are at least two.
func (s *Scratch) conjunction(c lookups, k *flow.Key, hard *row) *row {
	saved := k.ConjID()
	defer k.SetConjID(saved)
	for {
		priority, more := s.highest()
		if !more || hard != nil && priority <= hard.priority {
			return hard
		}
		level := s.takeHighestClauses(priority)
		if len(level) < 2 && level[0].clauses.clause != 0 {
			continue
		}
		if r := s.completed(c, k, level, hard); r != nil {
			return r
		}
	}
}

// highest is the highest priority of the remaining clauses. more is false if they cannot complete
// a conjunction, because they belong to a single match without mixed clauses.
func (s *Scratch) highest() (priority uint16, more bool) {
	matches := 0
	for _, left := range s.soft {
		if len(left) > 0 {
			matches++
			priority, more = max(priority, left[0].priority), more || left[0].mixed
		}
	}
	return priority, more || matches > 1
}

// takeHighestClauses removes the clauses of the highest priority from the remaining ones, and
// returns them.
func (s *Scratch) takeHighestClauses(priority uint16) []*row {
	s.level = s.level[:0]
	for i, left := range s.soft {
		if len(left) == 0 || left[0].priority != priority {
			continue
		}
		s.level = append(s.level, &left[0])
		if s.soft[i] = left[1:]; len(left) > 1 && left[1].clauses == nil {
			s.soft[i] = nil // the hard row hides the clauses below
		}
	}
	return s.level
}

// completed is the entry of the first complete conjunction among clauses of one priority, or nil.
// If several are complete, OpenFlow leaves the choice open; here the lowest id that has an entry
// wins.
func (s *Scratch) completed(c lookups, k *flow.Key, level []*row, hard *row) *row {
	heads := s.fewer(level)
	for {
		id, more := next(heads)
		if !more {
			return nil
		}
		var seen, all uint64
		for _, r := range level {
			has, of := r.clauses.of(id)
			seen, all = seen|has, all|of
		}
		if seen != all {
			continue
		}
		k.SetConjID(id)
		if r := s.withID(c, k, hard); r != nil {
			return r
		}
	}
}

// withID is the best hard entry for a key that has a conjunction's id now. hard was the best one
// without the id.
func (s *Scratch) withID(c lookups, k *flow.Key, hard *row) *row {
	if hard != nil && hard.entry.namesID { // it matches conj_id=0
		soft := s.soft
		s.soft = s.none[:0]
		hard = c.lookup(k, nil, s)
		s.soft, s.none = soft, s.soft
	}
	return c.completed(k, hard, s)
}

// fewer returns the ids of the rows with clause 1 or with clause 2, whichever are fewer. Both
// name every conjunction that can be complete.
func (s *Scratch) fewer(level []*row) [][]flow.Conjunction {
	var count [2]int
	for i := range s.candidates {
		s.candidates[i] = s.candidates[i][:0]
		for _, r := range level {
			if cl := r.clauses; cl.clause == 0 || int(cl.clause) == i+1 {
				s.candidates[i] = append(s.candidates[i], cl.actions)
				count[i] += len(cl.actions)
			}
		}
	}
	if count[0] <= count[1] {
		return s.candidates[0]
	}
	return s.candidates[1]
}

// next removes the lowest id from the front of lists in rising order, and returns it.
func next(heads [][]flow.Conjunction) (id uint32, more bool) {
	for _, h := range heads {
		if len(h) > 0 && (!more || h[0].ID < id) {
			id, more = h[0].ID, true
		}
	}
	for i, h := range heads {
		for len(h) > 0 && h[0].ID == id {
			h = h[1:]
		}
		heads[i] = h
	}
	return id, more
}
