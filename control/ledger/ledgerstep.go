package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/antrail/antrail/flow"
)

// A step changes claims and makes the bundle for the switch. The bundle has the difference
// between what the claims of touched rows add up to and what the switch has. A row without a
// difference is not in it, so that entry keeps its counters.

// Step is a change of claims. It ends with Keep if the switch took the bundle, or with Undo, which
// puts every claim back. Rows are in the order in which they were touched, so equal steps make
// equal bundles.
type Step struct {
	l       *Ledger
	seen    map[*Row]bool
	rows    []*Row
	results []*flow.Entry // what rows add up to, once Bundle was called
	groups  []uint32
	meters  []uint32
	before  map[Part]*Desired // what parts claimed before the step
	order   []Part            // the keys of the map before, in order
	sets    map[Part]bool     // sets whose clauses moved
}

// BeginStep begins a step. A ledger has one step at a time.
func (l *Ledger) BeginStep() *Step {
	return &Step{l: l, seen: map[*Row]bool{}, before: map[Part]*Desired{}, sets: map[Part]bool{}}
}

// Claim makes a part claim d in place of its earlier claims; nil claims nothing. After a clash, the
// part claims what it claimed before, and the error names both objects.
func (s *Step) Claim(p Part, d *Desired) error {
	was := s.l.Desired(p)
	if _, ok := s.before[p]; !ok {
		s.before[p] = was
		s.order = append(s.order, p)
	}
	err := s.replace(p, d)
	if err != nil {
		s.Release(p)
		if again := s.replace(p, was); again != nil {
			panic("ledger: claims that were there clash: " + again.Error())
		}
	}
	return err
}

// replace moves the claims of a part to d. After a clash some of the claims are made; Release
// takes them back.
func (s *Step) replace(p Part, d *Desired) error {
	if d == nil {
		s.Release(p)
		return nil
	}
	c := s.l.parts[p]
	if c == nil {
		c = &claimant{part: p, desired: &Desired{}}
		s.l.enter(c)
	}
	was := c.desired
	c.desired = d
	if d.Shared {
		c.set = s.l.shared(p)
	}
	s.moveClauses(c, was.Clauses, d.Clauses)
	s.drop(c, onlyIn(was.Entries, d.Entries))
	s.dropIDs(c, was)
	for _, w := range onlyIn(d.Entries, was.Entries) {
		if err := s.claimEntry(c, w); err != nil {
			return err
		}
	}
	return s.claimIDs(c)
}

func (s *Step) claimEntry(c *claimant, w Wanted) error {
	r := s.l.open(w.Entry)
	s.touch(r)
	if c := r.admits(claim{c, w}); c != nil {
		return errors.New(c.text(s.l.names))
	}
	r.addClaim(claim{c, w})
	return nil
}

func (s *Step) touch(r *Row) {
	if !s.seen[r] {
		s.seen[r] = true
		s.rows = append(s.rows, r)
	}
}

// claimIDs claims the groups and meters of a part.
func (s *Step) claimIDs(c *claimant) error {
	for _, g := range c.desired.Groups {
		s.groups = append(s.groups, g.Group.ID)
		if err := claimID(s.l.groups, c, g.Group.ID, g.Group); err != nil {
			return fmt.Errorf("%s: group %w", g.Origin, err)
		}
	}
	for _, m := range c.desired.Meters {
		s.meters = append(s.meters, m.ID)
		if err := claimID(s.l.meters, c, m.ID, m); err != nil {
			return fmt.Errorf("%s: meter %w", c.part.Object, err)
		}
	}
	return nil
}

func claimID[T any](rows map[uint32]*idRow[T], c *claimant, id uint32, want *T) error {
	r := rows[id]
	if r == nil {
		r = &idRow[T]{}
		rows[id] = r
	}
	if r.by != nil {
		return fmt.Errorf("%d belongs to %s", id, r.by.part.Object)
	}
	r.by, r.want = c, want
	return nil
}

// Release takes back all claims of a part.
func (s *Step) Release(p Part) {
	c := s.l.parts[p]
	if c == nil {
		return
	}
	s.drop(c, c.desired.Entries)
	s.moveClauses(c, c.desired.Clauses, nil)
	if c.set != nil {
		s.sets[p] = true
	}
	s.dropIDs(c, c.desired)
	s.l.removePart(p)
}

// drop takes back the claims of entries that were made.
func (s *Step) drop(c *claimant, entries []Wanted) {
	for _, w := range entries {
		if r := s.l.find(w.Entry); r != nil {
			s.touch(r)
			r.drop(c, w.Entry)
		}
	}
}

// dropIDs takes back the claims of d's groups and meters that were made.
func (s *Step) dropIDs(c *claimant, d *Desired) {
	for _, g := range d.Groups {
		s.groups = append(s.groups, g.Group.ID)
		dropID(s.l.groups, c, g.Group.ID)
	}
	for _, m := range d.Meters {
		s.meters = append(s.meters, m.ID)
		dropID(s.l.meters, c, m.ID)
	}
}

func dropID[T any](rows map[uint32]*idRow[T], c *claimant, id uint32) {
	if r := rows[id]; r != nil && r.by == c {
		r.by, r.want = nil, nil
	}
}

// Bundle is what the step changes in the switch.
func (s *Step) Bundle() *flow.Bundle {
	b := &flow.Bundle{}
	s.touchAdopted()
	s.touchSets()
	s.results = make([]*flow.Entry, len(s.rows))
	for i, r := range s.rows {
		want := r.wants()
		switch {
		case want == nil && r.has != nil:
			b.Delete = append(b.Delete, r.has)
		case want != nil && r.has != nil && sameEffect(want, r.has):
			want = r.has
		case want != nil:
			b.Add = append(b.Add, want)
		}
		s.results[i] = want
	}
	b.Groups, b.DeleteGroups = idBundle(s.l.groups, uniqueIDs(s.groups))
	b.Meters, b.DeleteMeters = idBundle(s.l.meters, uniqueIDs(s.meters))
	return b
}

func uniqueIDs(ids []uint32) []uint32 {
	slices.Sort(ids)
	return slices.Compact(ids)
}

func idBundle[T any](rows map[uint32]*idRow[T], ids []uint32) (set []*T, gone []uint32) {
	for _, id := range ids {
		switch r := rows[id]; {
		case r == nil:
		case r.want == nil && r.has != nil:
			gone = append(gone, id)
		case r.want != nil && !reflect.DeepEqual(r.want, r.has):
			set = append(set, r.want)
		}
	}
	return set, gone
}

// Keep ends a step whose bundle the switch has taken.
func (s *Step) Keep() {
	for i, r := range s.rows {
		r.has = s.results[i]
		if r.has == nil && len(r.claims) == 0 {
			s.l.forget(r)
		}
	}
	s.l.adopted, s.l.inherits = nil, false
	keepIDs(s.l.groups, s.groups)
	keepIDs(s.l.meters, s.meters)
	s.forgetSets()
}

func keepIDs[T any](rows map[uint32]*idRow[T], ids []uint32) {
	for _, id := range ids {
		r := rows[id]
		if r == nil {
			continue
		}
		r.has = r.want
		if r.has == nil {
			delete(rows, id)
		}
	}
}

// Undo ends a step and puts all claims back as they were before it.
func (s *Step) Undo() {
	for _, p := range s.order {
		s.Release(p)
	}
	for _, p := range s.order {
		if err := s.replace(p, s.before[p]); err != nil {
			panic("ledger: claims that were there clash: " + err.Error())
		}
	}
	for _, r := range s.rows {
		if r.has == nil && len(r.claims) == 0 {
			s.l.forget(r)
		}
	}
	s.forgetSets()
}

// touchAdopted touches everything that was adopted, so what no part claims goes with the
// bundle.
func (s *Step) touchAdopted() {
	if !s.l.inherits {
		return
	}
	for _, r := range s.l.adopted {
		s.touch(r)
	}
	for id := range s.l.groups {
		s.groups = append(s.groups, id)
	}
	for id := range s.l.meters {
		s.meters = append(s.meters, id)
	}
}

// Purges are the connections to remove before and after a step's bundle. owned has the owners of
// addresses before the first step.
func (s *Step) Purges(owned map[AddressOwner]bool) (before, after []Purge) {
	for _, p := range s.order {
		was, now := s.before[p], s.l.Desired(p)
		if was == nil {
			was = &Desired{}
		}
		if now == nil {
			now = &Desired{}
		}
		for _, addr := range now.Owns {
			if !slices.Contains(was.Owns, addr) && !owned[AddressOwner{addr, p.Object}] {
				before = append(before, Purge{Addr: addr})
			}
		}
		after = append(after, gonePaths(was.Paths, now.Paths)...)
	}
	return before, after
}

func gonePaths(was, now []Path) (gone []Purge) {
	if len(was) == 0 {
		return nil
	}
	still := map[Path]bool{}
	for _, p := range now {
		still[p] = true
	}
	for _, p := range was {
		if !still[p] {
			gone = append(gone, Purge{Path: p})
			still[p] = true
		}
	}
	return gone
}
