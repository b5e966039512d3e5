package ledger

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
)

// Ledger has a row for each identity (table, priority, match) that a part wants or the switch
// has. The row holds the claims of all parts and the entry in the switch. Claims change in a
// Step (ledgerstep.go).
type Ledger struct {
	hash   func(*flow.Entry) uint64 // of an identity; tests make them collide
	rows   map[uint64]*Row
	groups map[uint32]*idRow[flow.Group]
	meters map[uint32]*idRow[flow.Meter]
	parts  map[Part]*claimant
	of     map[cluster.Key]map[string]*claimant // parts of an object by name
	sets   map[Part]*clauseSet                  // see sharedclause.go
	names  *flow.Names                          // for errors
	// adopted has the rows that the switch had at the start (Adopt). If inherits is true, no
	// step was kept since.
	adopted  []*Row
	inherits bool
}

// claimant is a part with what it claims now.
type claimant struct {
	part    Part
	desired *Desired
	set     *clauseSet // nil if its entries have their own actions
}

// Row has everything about one identity.
type Row struct {
	key    *flow.Entry // has the identity; its actions do not count
	claims []claim
	places map[claimKey]int // index in claims; nil if they are few
	has    *flow.Entry      // the entry in the switch, or nil
	next   *Row             // another identity with the same hash
}

// claim is what one part wants of an identity.
type claim struct {
	by *claimant
	Wanted
}

// claimKey tells the claims of a row apart. A part may want an identity by two entries.
type claimKey struct {
	by    *claimant
	entry *flow.Entry
}

func (c *claim) id() claimKey { return claimKey{c.by, c.Entry} }

// manyClaims is the number of claims from which a row finds them by a map.
const manyClaims = 64

// addClaim puts a claim into a row, unless it is there.
func (r *Row) addClaim(c claim) {
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

// drop takes a claim out of a row, if the row has it. The last claim moves into its place.
func (r *Row) drop(by *claimant, e *flow.Entry) {
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

// place is the index of a claim in a row, or -1.
func (r *Row) place(id claimKey) int {
	if r.places == nil {
		return slices.IndexFunc(r.claims, func(c claim) bool { return c.id() == id })
	}
	if at, there := r.places[id]; there {
		return at
	}
	return -1
}

// idRow has everything about the number of a group or meter.
type idRow[T any] struct {
	by   *claimant // nil if no part wants it
	want *T
	has  *T // what the switch has
}

// New returns an empty ledger, for a switch without entries.
func New() *Ledger {
	seed := maphash.MakeSeed()
	return &Ledger{
		hash: func(e *flow.Entry) uint64 { return hashIdentity(seed, e) },
		rows: map[uint64]*Row{}, parts: map[Part]*claimant{},
		groups: map[uint32]*idRow[flow.Group]{}, meters: map[uint32]*idRow[flow.Meter]{},
		of: map[cluster.Key]map[string]*claimant{}, sets: map[Part]*clauseSet{},
	}
}

func hashIdentity(seed maphash.Seed, e *flow.Entry) uint64 {
	return maphash.Comparable(seed, e.Match) ^ uint64(e.Table)<<56 ^ uint64(e.Priority)
}

// sameIdentity compares the Identity of both without copies.
func sameIdentity(a, b *flow.Entry) bool {
	return a.Table == b.Table && a.Priority == b.Priority && a.Match == b.Match
}

// find returns the row of an entry's identity, or nil.
func (l *Ledger) find(e *flow.Entry) *Row {
	r := l.rows[l.hash(e)]
	for r != nil && !sameIdentity(r.key, e) {
		r = r.next
	}
	return r
}

// open returns the row of an entry's identity, and makes it if there is none.
func (l *Ledger) open(e *flow.Entry) *Row {
	if r := l.find(e); r != nil {
		return r
	}
	h := l.hash(e)
	r := &Row{key: e, next: l.rows[h]}
	l.rows[h] = r
	return r
}

// forget takes a row out.
func (l *Ledger) forget(gone *Row) {
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

// wants is the entry that the claims of a row add up to. It is nil without claims, and for
// claims of sets that no rule shares.
func (r *Row) wants() *flow.Entry {
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

// withActions copies an entry with other actions.
func withActions(e *flow.Entry, actions []flow.Action) *flow.Entry {
	c := *e
	c.Actions = actions
	return &c
}

// merged is an entry with the conjunctions of all claims.
func (r *Row) merged(e *flow.Entry) *flow.Entry {
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

// admits returns the clash of a new claim with the claims of a row, or nil.
func (r *Row) admits(w claim) *clash {
	if len(r.claims) == 0 {
		return nil
	}
	have := r.claims[0]
	if w.conjunctive() && have.conjunctive() || w.by.set == nil && have.by.set == nil && sameEffect(have.Entry, w.Entry) {
		return nil
	}
	return &clash{w.Wanted, have.Wanted}
}

// clash is two objects that want different actions for one match.
type clash struct{ wanted, have Wanted }

// text names both objects, the match and what each wants of it.
func (c *clash) text(names *flow.Names) string {
	match, wants, _ := strings.Cut(c.wanted.Entry.Text(flow.Format{Names: names}), "actions=")
	if _, rest, ok := strings.Cut(match, " table="); ok {
		match = "table=" + rest
	}
	return fmt.Sprintf("%s wants %s of %s and %s has %s for it", c.wanted.Origin, wants, strings.TrimSpace(match),
		c.have.Origin, flow.ActionsText(c.have.Entry.Actions, flow.Format{Names: names}))
}

// Desired is what a part claims now, or nil.
func (l *Ledger) Desired(p Part) *Desired {
	if c := l.parts[p]; c != nil {
		return c.desired
	}
	return nil
}

func (l *Ledger) enter(c *claimant) {
	l.parts[c.part] = c
	if l.of[c.part.Object] == nil {
		l.of[c.part.Object] = map[string]*claimant{}
	}
	l.of[c.part.Object][c.part.Name] = c
}

func (l *Ledger) removePart(p Part) {
	delete(l.parts, p)
	delete(l.of[p.Object], p.Name)
	if len(l.of[p.Object]) == 0 {
		delete(l.of, p.Object)
	}
}

// Inherited reports whether the switch still has what Adopt was given: no step was kept since.
func (l *Ledger) Inherited() bool { return l.inherits }

// NameTables gives the ledger the names of tables and ports for its errors.
func (l *Ledger) NameTables(n *flow.Names) { l.names = n }

// Adopt takes the program that the switch has. No part claims it yet; the first step looks at all
// of it, so what no part claims goes with its bundle.
func (l *Ledger) Adopt(p *flow.Program) {
	for _, e := range p.Entries {
		r := l.open(e)
		r.has = e
		l.adopted = append(l.adopted, r)
	}
	for _, g := range p.Groups {
		l.groups[g.ID] = &idRow[flow.Group]{has: g}
	}
	for _, m := range p.Meters {
		l.meters[m.ID] = &idRow[flow.Meter]{has: m}
	}
	l.inherits = true
}
