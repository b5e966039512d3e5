package control

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// Shared clauses: addresses that many rules name.
//
// Ten thousand rules may let in the same ten thousand Pods. If each rule wanted
// the entries of each Pod, a Pod that comes would be wanted ten thousand times,
// for one entry. So such addresses are a part of their own, a *set*, whose
// entries say what is matched and nothing of what is done (Desired.Shared), and
// a rule says that its clause is fulfilled by them (Desired.Clauses). What an
// entry of a set comes to is the conjunctions of all clauses of the set: one
// slice of actions, which all its entries hold. A Pod costs its own entries,
// whoever names it; a rule costs the entries of its sets, as each of them gets
// one more conjunction.
//
// Who owns what stays as it was: that a rule has a clause is the rule's, goes
// and comes with its policy, and is explained by it. That an address is in a
// set is the set's.

// SharedClause says that the entries of another part fulfil a clause of a rule.
type SharedClause struct {
	By          Part
	Conjunction flow.Conjunction
	Origin      *Origin
}

func (c SharedClause) equal(o SharedClause) bool {
	return c.By == o.By && c.Conjunction == o.Conjunction && (c.Origin == o.Origin || *c.Origin == *o.Origin)
}

// clauseSet is who shares the entries of a set.
type clauseSet struct {
	clauses map[*claimant]SharedClause
	// actions are the conjunctions of all clauses, nil when they are to be
	// made anew. They are not written, as entries hold them.
	actions []flow.Action
}

// shared is the set of a part, made when there is none.
func (l *ledger) shared(p Part) *clauseSet {
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

// actions are what a claim wants done; none for one of a set that no rule
// shares.
func (c claim) actions() []flow.Action {
	if c.by.set != nil {
		return c.by.set.conjunctions()
	}
	return c.Entry.Actions
}

// conjunctive reports whether a claim goes together with others that want
// conjunctions of the same match.
func (c claim) conjunctive() bool { return c.by.set != nil || onlyConjunctions(c.Entry) }

// moveClauses changes the clauses that a part has from was to now.
func (s *ledgerStep) moveClauses(c *claimant, was, now []SharedClause) {
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

// moveClause gives a part a clause of a set, or with nil takes its clause away.
func (s *ledgerStep) moveClause(c *claimant, by Part, clause *SharedClause) {
	set := s.l.shared(by)
	if clause == nil {
		delete(set.clauses, c)
	} else {
		set.clauses[c] = *clause
	}
	set.actions = nil
	s.sets[by] = true
}

// touchSets touches the rows of all sets whose clauses moved: they come to
// something else now.
func (s *ledgerStep) touchSets() {
	for p := range s.sets {
		if d := s.l.desired(p); d != nil {
			for _, w := range d.Entries {
				if r := s.l.find(w.Entry); r != nil {
					s.touch(r)
				}
			}
		}
	}
}

// forgetSets drops what is known of sets that nobody has any more.
func (s *ledgerStep) forgetSets() {
	for p := range s.sets {
		if set := s.l.sets[p]; set != nil && len(set.clauses) == 0 && s.l.parts[p] == nil {
			delete(s.l.sets, p)
		}
	}
}
