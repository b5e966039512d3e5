package control

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
)

// The ledger: who wants which entry, group and meter, and what the switch has.
//
// Entries are found by a hash of their identity. An identity has one row with
// a claim of every part that wants it, and the entry that the switch has. A
// row exists as long as it has claims or the switch has its entry.
//
// Claims change in a step (step.go).

// ledger is used by one goroutine at a time.
type ledger struct {
	hash   func(*flow.Entry) uint64 // of an identity; tests make them collide
	rows   map[uint64]*row
	groups map[uint32]*idRow[flow.Group]
	meters map[uint32]*idRow[flow.Meter]
	parts  map[Part]*claimant
	of     map[Key]map[string]*claimant // parts of an object by name
	sets   map[Part]*clauseSet          // see ledger_shared.go
	names  *flow.Names                  // for errors
	// adopted is what the switch had at the start (recall.go); inherits: no step
	// was kept since.
	adopted  []*row
	inherits bool
}

// claimant is a part with its present claims.
type claimant struct {
	part    Part
	desired *Desired
	set     *clauseSet // nil: its entries say themselves what they do
}

// row is everything about one identity.
type row struct {
	key    *flow.Entry // has the identity; what it does is of no account
	claims []claim
	places map[claimKey]int // in claims, where they are many; else nil
	has    *flow.Entry      // what the switch has; nil: no such entry
	next   *row             // another identity with the same hash
}

// claim is what one part wants of an identity.
type claim struct {
	by *claimant
	Wanted
}

// claimKey tells the claims of a row apart: a part may want an identity twice,
// by two entries.
type claimKey struct {
	by    *claimant
	entry *flow.Entry
}

func (c *claim) id() claimKey { return claimKey{c.by, c.Entry} }

// manyClaims is how many claims a row has before they are found by a map.
const manyClaims = 64

// add puts a claim into a row, unless it is there.
func (r *row) add(c claim) {
	if r.place(c.id()) >= 0 {
		return
	}
	r.claims = append(r.claims, c)
	switch {
	case r.places != nil:
		r.places[c.id()] = len(r.claims) - 1
	case len(r.claims) > manyClaims:
		r.places = make(map[claimKey]int, 2*len(r.claims))
		for i := range r.claims {
			r.places[r.claims[i].id()] = i
		}
	}
}

// drop takes a claim out of a row that may not have it; the last one takes its
// place.
func (r *row) drop(by *claimant, e *flow.Entry) {
	at, last := r.place(claimKey{by, e}), len(r.claims)-1
	if at < 0 {
		return
	}
	delete(r.places, claimKey{by, e})
	if at < last {
		r.claims[at] = r.claims[last]
		if r.places != nil {
			r.places[r.claims[at].id()] = at
		}
	}
	r.claims[last] = claim{}
	r.claims = r.claims[:last]
	if last <= manyClaims/2 {
		r.places = nil
	}
}

// place is where a claim is in a row, or -1.
func (r *row) place(id claimKey) int {
	if r.places == nil {
		return slices.IndexFunc(r.claims, func(c claim) bool { return c.id() == id })
	}
	if at, there := r.places[id]; there {
		return at
	}
	return -1
}

// idRow is everything about the number of a group or meter.
type idRow[T any] struct {
	by   *claimant // nil: nobody wants it
	want *T
	has  *T // what the switch has
}

func newLedger() *ledger {
	seed := maphash.MakeSeed()
	return &ledger{
		hash: func(e *flow.Entry) uint64 { return hashIdentity(seed, e) },
		rows: map[uint64]*row{}, parts: map[Part]*claimant{},
		groups: map[uint32]*idRow[flow.Group]{}, meters: map[uint32]*idRow[flow.Meter]{},
		of: map[Key]map[string]*claimant{}, sets: map[Part]*clauseSet{},
	}
}

func hashIdentity(seed maphash.Seed, e *flow.Entry) uint64 {
	return maphash.Comparable(seed, e.Match) ^ uint64(e.Table)<<56 ^ uint64(e.Priority)
}

// sameIdentity is Identity of both compared, without making copies.
func sameIdentity(a, b *flow.Entry) bool {
	return a.Table == b.Table && a.Priority == b.Priority && a.Match == b.Match
}

// find is the row of an entry's identity, nil when there is none.
func (l *ledger) find(e *flow.Entry) *row {
	r := l.rows[l.hash(e)]
	for r != nil && !sameIdentity(r.key, e) {
		r = r.next
	}
	return r
}

// open is the row of an entry's identity, a new one when there is none.
func (l *ledger) open(e *flow.Entry) *row {
	if r := l.find(e); r != nil {
		return r
	}
	h := l.hash(e)
	r := &row{key: e, next: l.rows[h]}
	l.rows[h] = r
	return r
}

// forget takes a row out.
func (l *ledger) forget(gone *row) {
	h := l.hash(gone.key)
	if l.rows[h] == gone {
		l.rows[h] = gone.next
		if gone.next == nil {
			delete(l.rows, h)
		}
		return
	}
	at := l.rows[h]
	for at.next != gone {
		at = at.next
	}
	at.next = gone.next
}

// wants is the entry that the claims of a row come to; nil without claims, or
// when they are of sets that no rule shares.
func (r *row) wants() *flow.Entry {
	var first *claim
	several := false
	for i := range r.claims {
		if c := &r.claims[i]; len(c.actions()) > 0 || c.by.set == nil {
			several = first != nil
			if first == nil {
				first = c
			}
			if several {
				break
			}
		}
	}
	switch {
	case first == nil:
		return nil
	case several && first.conjunctive():
		return r.merged(first.Entry)
	case first.by.set == nil:
		return first.Entry
	}
	return withActions(first.Entry, first.actions())
}

// withActions is a copy of an entry that does something else.
func withActions(e *flow.Entry, actions []flow.Action) *flow.Entry {
	c := *e
	c.Actions = actions
	return &c
}

// merged is an entry with the conjunctions of all claims.
func (r *row) merged(e *flow.Entry) *flow.Entry {
	actions := make([]flow.Action, 0, len(r.claims))
	for _, c := range r.claims {
		actions = append(actions, c.actions()...)
	}
	slices.SortFunc(actions, compareConjunctions)
	return withActions(e, slices.Compact(actions))
}

// compareConjunctions orders by conjunction and clause.
func compareConjunctions(a, b flow.Action) int {
	x, y := a.(flow.Conjunction), b.(flow.Conjunction)
	if x.ID != y.ID {
		return int(int64(x.ID) - int64(y.ID))
	}
	return int(x.Clause) - int(y.Clause)
}

// admits reports a clash of a claim with what a row is claimed for.
func (r *row) admits(w claim) *clash {
	if len(r.claims) == 0 {
		return nil
	}
	have := r.claims[0]
	if w.conjunctive() && have.conjunctive() || w.by.set == nil && have.by.set == nil && sameEffect(have.Entry, w.Entry) {
		return nil
	}
	return &clash{w.Wanted, have.Wanted}
}

// clash says that two objects want the same match to do different things.
type clash struct{ wanted, have Wanted }

// text names both objects, the match and what each wants of it.
func (c *clash) text(names *flow.Names) string {
	match, wants, _ := strings.Cut(c.wanted.Entry.Text(flow.Format{Names: names}), "actions=")
	if _, rest, ok := strings.Cut(match, " table="); ok {
		match = "table=" + rest
	}
	return fmt.Sprintf("%s wants %s of %s and %s has %s for it", c.wanted.Origin, wants, strings.TrimSpace(match),
		c.have.Origin, flow.ActionsText(c.have.Entry.Actions, names))
}

// desired is what a part claims now, nil for nothing.
func (l *ledger) desired(p Part) *Desired {
	if c := l.parts[p]; c != nil {
		return c.desired
	}
	return nil
}

func (l *ledger) enter(c *claimant) {
	l.parts[c.part] = c
	if l.of[c.part.Object] == nil {
		l.of[c.part.Object] = map[string]*claimant{}
	}
	l.of[c.part.Object][c.part.Name] = c
}

func (l *ledger) leave(p Part) {
	delete(l.parts, p)
	delete(l.of[p.Object], p.Name)
	if len(l.of[p.Object]) == 0 {
		delete(l.of, p.Object)
	}
}
