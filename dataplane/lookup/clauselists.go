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
}

// worthSharing is the length of a list from which on it is looked for.
const worthSharing = 8

// Of is the clauses of an entry by its actions; nil for a hard one.
func (l *ClauseLists) Of(actions []flow.Action) *Clauses {
	if len(actions) < worthSharing || !IsSoft(actions) {
		return newClauses(actions)
	}
	at := weak.Make(&actions[0])
	if c := l.known[at].Value(); c != nil && len(c.actions) == len(actions) {
		return c
	}
	c := newClauses(actions)
	l.add(at, c)
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
