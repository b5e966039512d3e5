package lookup

import (
	"weak"

	"github.com/antrail/antrail/flow"
)

// ClauseLists are the clauses of long action lists in present entries. If ten thousand rules name
// ten thousand addresses, that is ten thousand entries with one action list. The list is compiled
// once, also for an address that comes a day later. A list is identified by its address, and
// ClauseLists does not keep it in memory.
type ClauseLists struct {
	known map[weak.Pointer[flow.Action]]weak.Pointer[Clauses]
	limit int // number of lists at which dead ones are swept out

	// Clauses of short lists, and their conjunctions, are made several at a time.
	short        []Clauses // not yet used by an entry
	conjunctions []flow.Conjunction
}

// worthSharing is the shortest list that is shared.
const worthSharing = 8

// madeTogether is how many small parts of entries are allocated as one object, because the
// garbage collector visits each object. All of them stay in memory as long as one is in use.
const madeTogether = 32

// Of is the clauses of an entry with these actions; nil for a hard entry.
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

// ofShort is Of for a short list of a soft entry.
func (l *ClauseLists) ofShort(actions []flow.Action) *Clauses {
	if len(l.short) == 0 {
		l.short = make([]Clauses, madeTogether)
		l.conjunctions = make([]flow.Conjunction, 0, madeTogether)
	}
	c := &l.short[0]
	l.short = l.short[1:]
	before := len(l.conjunctions)
	l.conjunctions = appendClauses(l.conjunctions, actions) // if it is reallocated, earlier clauses keep their memory
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

// minSweep is the smallest limit, so that a short table is not swept all the time.
const minSweep = 64
