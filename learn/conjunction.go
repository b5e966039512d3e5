package learn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// Why a conjunction does not match. A packet meets conjunction C if it meets one entry of
// each clause. The entries must agree in three numbers: the conjunction's number, its count
// of clauses, and the priority.

// clauseSet are the entries of a conjunction that agree in these numbers, and the clauses
// that a packet meets.
type clauseSet struct {
	id       uint32
	priority uint16
	n        uint8
	met      map[uint8]bool
}

// isClause says whether an entry only takes part in conjunctive matches.
func isClause(e *flow.Entry) bool { return len(e.Actions) > 0 && len(clausesOf(e)) == len(e.Actions) }

// clausesOf are the clauses that an entry fulfils.
func clausesOf(e *flow.Entry) (all []flow.Conjunction) {
	for _, a := range e.Actions {
		if c, is := a.(flow.Conjunction); is {
			all = append(all, c)
		}
	}
	return all
}

// clauseSets are the sets of a table, as a packet meets them, without the entry skip.
func (v *visit) clauseSets(p *flow.Program, table uint8, skip *flow.Entry) (sets []*clauseSet) {
	for _, e := range p.Entries {
		if e.Table != table || e == skip {
			continue
		}
		for _, c := range clausesOf(e) {
			i := slices.IndexFunc(sets, func(s *clauseSet) bool { return s.id == c.ID && s.priority == e.Priority && s.n == c.N })
			if i < 0 {
				i, sets = len(sets), append(sets, &clauseSet{c.ID, e.Priority, c.N, map[uint8]bool{}})
			}
			if e.Match.Matches(&v.key) {
				sets[i].met[c.Clause] = true
			}
		}
	}
	return sets
}

// fullest is the set of a conjunction with the most clauses that a packet meets; nil if no
// entry is a clause of it.
func fullest(sets []*clauseSet, id uint32) (best *clauseSet) {
	for _, s := range sets {
		if s.id == id && (best == nil || len(s.met) > len(best.met)) {
			best = s
		}
	}
	return best
}

// missing is the first clause that a packet does not meet; 0 if it meets all.
func (s *clauseSet) missing() uint8 {
	for k := uint8(1); k <= s.n; k++ {
		if !s.met[k] {
			return k
		}
	}
	return 0
}

// incomplete says why the entry of a conjunction was not taken.
func (v *visit) incomplete(e *flow.Entry, p *flow.Program) string {
	value, _ := e.Match.Get(flow.ConjID)
	id := uint32(value.Lo)
	sets := v.clauseSets(p, e.Table, nil)
	best := fullest(sets, id)
	if best == nil {
		return fmt.Sprintf("no entry of the table is a clause of conjunction %d", id)
	}
	if k := best.missing(); k != 0 {
		text := fmt.Sprintf("of conjunction %d the packet meets no entry of clause %d/%d", id, k, best.n)
		for _, s := range sets {
			if s.id == id && s.n == best.n && s.met[k] {
				text += fmt.Sprintf(" with priority %d; it meets one with %d, but only clauses of one priority count together", best.priority, s.priority)
			}
		}
		return text
	}
	return fmt.Sprintf("the packet meets all clauses of conjunction %d, but an entry of a priority above was taken", id)
}

// clauseWhy says why the conjunctions of a matching entry, with no other actions, match or
// do not.
func (v *visit) clauseWhy(e *flow.Entry, p *flow.Program) string {
	others := v.clauseSets(p, e.Table, e)
	var texts []string
	for _, c := range clausesOf(e) {
		what := fmt.Sprintf("matches, as clause %d/%d of conjunction %d", c.Clause, c.N, c.ID)
		texts = append(texts, what+v.clauseLacks(e, c, others, p))
	}
	return strings.Join(texts, "; ")
}

// clauseLacks says why one clause of an entry does not count.
func (v *visit) clauseLacks(e *flow.Entry, c flow.Conjunction, others []*clauseSet, p *flow.Program) string {
	best := fullest(others, c.ID)
	if best == nil && len(others) > 0 {
		return fmt.Sprintf(", but no other entry is a clause of conjunction %d: the others here are of conjunction %d", c.ID, others[0].id)
	}
	if best == nil {
		return ", but no other entry is a clause of it"
	}
	if best.n != c.N {
		return fmt.Sprintf(", but for the other entries conjunction %d has %d clauses: an entry counts only with those that say the same", c.ID, best.n)
	}
	if best.priority != e.Priority {
		return fmt.Sprintf(", but its priority is %d, and the other clauses have %d: only clauses of one priority count together", e.Priority, best.priority)
	}
	best.met[c.Clause] = true
	if k := best.missing(); k != 0 {
		return fmt.Sprintf(", but the packet meets no entry of clause %d/%d", k, c.N)
	}
	if !slices.ContainsFunc(p.Entries, func(x *flow.Entry) bool { return x.Table == e.Table && asksFor(x, c.ID) }) {
		return fmt.Sprintf(", and the packet meets the others, but no entry matches conj_id=%d", c.ID)
	}
	return ", and the packet meets the others"
}

// asksFor says whether an entry matches a conjunction's number.
func asksFor(e *flow.Entry, id uint32) bool {
	value, mask := e.Match.Get(flow.ConjID)
	return !mask.IsZero() && uint32(value.Lo) == id
}
