package ledger

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// Addresses that many rules name.
//
// Ten thousand rules may let in the same ten thousand Pods. If each rule claimed the entries
// of each Pod, a new Pod would cost ten thousand claims for one entry. Such addresses are
// therefore a part of their own, a *set*. The entries of a set have a match and no actions of
// their own (Desired.Shared). A rule names the set as a clause (Desired.Clauses). Each entry
// of the set gets the conjunctions of all clauses, in one slice that all entries share.
//
// A new Pod costs its own entries, however many rules name it. A new rule costs the entries
// of its sets, because each of them gets one more conjunction. The clause belongs to the rule
// and goes with its policy; the address belongs to the set.

// SharedClause is a clause of a rule that the entries of another part fulfil.
type SharedClause struct {
	By          Part
	Conjunction flow.Conjunction
	Origin      *Origin
}

func (c SharedClause) equal(o SharedClause) bool {
	return c.By == o.By && c.Conjunction == o.Conjunction && (c.Origin == o.Origin || *c.Origin == *o.Origin)
}

// clauseSet has the clauses that share the entries of a set.
type clauseSet struct {
	clauses map[*claimant]SharedClause
	// actions are the conjunctions of all clauses, or nil if the clauses changed. Entries
	// hold the slice, so it is never written.
	actions []flow.Action
}

// shared returns the set of a part, and makes it if there is none.
func (l *Ledger) shared(p Part) *clauseSet {
	s := l.sets[p]
	if s == nil {
		s = &clauseSet{clauses: map[*claimant]SharedClause{}}
		l.sets[p] = s
	}
	return s
}

// conjunctions are the actions of a set's entries.
func (s *clauseSet) conjunctions() []flow.Action {
	if s.actions == nil && len(s.clauses) > 0 {
		s.actions = make([]flow.Action, 0, len(s.clauses))
		for _, c := range s.clauses {
			s.actions = append(s.actions, c.Conjunction)
		}
		slices.SortFunc(s.actions, compareConjunctions)
		s.actions = slices.Compact(s.actions) // a rule that moves is there twice for a while
	}
	return s.actions
}

// actions are those that a claim wants. A claim of a set that no rule shares has none.
func (c claim) actions() []flow.Action {
	if c.by.set != nil {
		return c.by.set.conjunctions()
	}
	return c.Entry.Actions
}

// conjunctive reports whether a claim can share its match with others of that kind.
func (c claim) conjunctive() bool { return c.by.set != nil || onlyConjunctions(c.Entry) }

// moveClauses changes the clauses of a part from was to now.
func (s *Step) moveClauses(c *claimant, was, now []SharedClause) {
	for _, x := range was {
		if !slices.ContainsFunc(now, x.equal) {
			s.moveClause(c, x.By, nil)
		}
	}
	for _, x := range now {
		if !slices.ContainsFunc(was, x.equal) {
			s.moveClause(c, x.By, &x)
		}
	}
}

// moveClause gives a part a clause of a set. With nil it takes the clause away.
func (s *Step) moveClause(c *claimant, by Part, clause *SharedClause) {
	set := s.l.shared(by)
	if clause == nil {
		delete(set.clauses, c)
	} else {
		set.clauses[c] = *clause
	}
	set.actions = nil
	s.sets[by] = true
}

// touchSets touches the rows of all sets whose clauses moved, because their actions changed.
func (s *Step) touchSets() {
	for p := range s.sets {
		if d := s.l.Desired(p); d != nil {
			for _, w := range d.Entries {
				if r := s.l.find(w.Entry); r != nil {
					s.touch(r)
				}
			}
		}
	}
}

// forgetSets drops sets that have no clause and no part.
func (s *Step) forgetSets() {
	for p := range s.sets {
		if set := s.l.sets[p]; set != nil && len(set.clauses) == 0 && s.l.parts[p] == nil {
			delete(s.l.sets, p)
		}
	}
}
