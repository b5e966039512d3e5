package lookup

import (
	"weak"

	"github.com/antrail/antrail/flow"
)

// ClauseLists are the clauses of long lists of actions that entries have now. Ten
// thousand addresses that ten thousand rules name are ten thousand entries with one list
// of actions. It is compiled once, also for the address that comes a day later. A list is
// told by where it lies, and is not kept from being forgotten by being in here.
type ClauseLists struct {
	known map[weak.Pointer[flow.Action]]weak.Pointer[Clauses]
	limit int // how many may be known before those that are gone are swept out

	// Clauses of short lists, and their conjunctions, are made several at a time.
	short        []Clauses // that no entry has yet
	conjunctions []flow.Conjunction
}

// worthSharing is the length of a list from which on it is looked for.
const worthSharing = 8

// madeTogether is how many small parts of entries are one object, because the garbage collector looks
// at each object. All of them stay in memory as long as one is in use.
const madeTogether = 32

// Of is the clauses of an entry by its actions; nil for a hard one.
func (l *ClauseLists) Of(actions []flow.Action) *Clauses {
	if !IsSoft(actions) {
		return nil
	}
	if len(actions) < worthSharing {
		return l.ofShort(actions)
	}
	at := weak.Make(&actions[0])
	if c := l.known[at].Value(); c != nil && len(c.actions) == len(actions) {
		return c
	}
	c := newClauses(actions)
	l.add(at, c)
	return c
}

// ofShort is Of a short list of a soft entry.
func (l *ClauseLists) ofShort(actions []flow.Action) *Clauses {
	if len(l.short) == 0 {
		l.short = make([]Clauses, madeTogether)
		l.conjunctions = make([]flow.Conjunction, 0, madeTogether)
	}
	c := &l.short[0]
	l.short = l.short[1:]
	before := len(l.conjunctions)
	l.conjunctions = appendClauses(l.conjunctions, actions) // if it grows, the clauses before keep what they have
	end := len(l.conjunctions)
	c.set(l.conjunctions[before:end:end])
	return c
}

func (l *ClauseLists) add(at weak.Pointer[flow.Action], c *Clauses) {
	if l.known == nil {
		l.known = map[weak.Pointer[flow.Action]]weak.Pointer[Clauses]{}
	}
	if len(l.known) >= l.limit {
		for k, v := range l.known {
			if v.Value() == nil {
				delete(l.known, k)
			}
		}
		l.limit = max(minSweep, 2*len(l.known))
	}
	l.known[at] = weak.Make(c)
}

// minSweep keeps short tables of lists from being swept all the time.
const minSweep = 64
