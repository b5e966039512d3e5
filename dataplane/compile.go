package dataplane

import (
	"weak"

	"github.com/antrail/antrail/flow"
)

// Actions are compiled where that saves work per packet: a value that an entry
// puts into a register or a mark is found as words of the key when the entry is
// installed, not field by field for each packet. Everything else runs as it is
// written. The actions of clauses are never run: of them, the conjunctions are
// compiled (conjunction.go).

// write is a set_field or load of a metadata field. It stands in for the action
// that it was compiled from, which traces show.
type write struct {
	flow.Action
	index       int // word of the key
	value, mask uint64
}

// compiled is a list of actions as packets run it. The list given stays as it
// is.
func compiled(actions []flow.Action) []flow.Action {
	all := make([]flow.Action, len(actions))
	for i, a := range actions {
		all[i] = compiledAction(a)
	}
	return all
}

func compiledAction(a flow.Action) flow.Action {
	switch a := a.(type) {
	case flow.SetField:
		return compiledWrite(a, a.Field, a.Value.And(a.Mask), a.Mask)
	case flow.Load:
		id, value, mask := inPlace(a.Dst, a.Value)
		return compiledWrite(a, id, value, mask)
	case flow.Clone:
		return flow.Clone{Actions: compiled(a.Actions)}
	}
	return a
}

// compiledWrite is the action that writes bits of a field, as a write when they
// lie in one word and no header of the frame follows them.
func compiledWrite(a flow.Action, id flow.FieldID, value, mask flow.Value) flow.Action {
	f := flow.FieldByID(id)
	index := f.Off / 8
	if f.Off >= flow.HeaderStart || index != (f.Off+f.Size-1)/8 {
		return a
	}
	var v, m flow.Key
	f.Put(&v, value, mask)
	f.Put(&m, mask, mask)
	return &write{a, index, v.Word(index), m.Word(index)}
}

// compiler makes the entries of one program after another. One goroutine at a
// time uses it.
type compiler struct {
	seq    uint64 // of the last entry
	shared clauseLists
}

// entry compiles an entry of a bundle.
func (c *compiler) entry(e *flow.Entry, now int64) *entry {
	c.seq++
	return newEntryWith(c.shared.of(e.Actions), e, c.seq, now)
}

// clauseLists are the clauses of long lists of actions that entries have now.
// Ten thousand addresses that ten thousand rules name are ten thousand entries
// with one list of actions: it is compiled once, also for the address that comes
// a day later. A list is told by where it lies, and is not kept from being
// forgotten by being in here.
type clauseLists struct {
	known map[weak.Pointer[flow.Action]]weak.Pointer[clauses]
	limit int // how many may be known before those that are gone are swept out
}

// worthSharing is the length of a list from which on it is looked for.
const worthSharing = 8

// of is the clauses of an entry by its actions; nil for a hard one.
func (l *clauseLists) of(actions []flow.Action) *clauses {
	if len(actions) < worthSharing || !soft(actions) {
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

func (l *clauseLists) add(at weak.Pointer[flow.Action], c *clauses) {
	if l.known == nil {
		l.known = map[weak.Pointer[flow.Action]]weak.Pointer[clauses]{}
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
