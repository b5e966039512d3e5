package control

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/antrail/antrail/flow"
)

// A step changes claims of the ledger and says what that means for the switch.
//
// It notes the rows that it touches. Its bundle is the difference between what
// their claims come to and what the switch has; a row that comes to what the
// switch has is not in the bundle, so the entry's counters go on. A step ends
// with keep, when the switch took the bundle, or with undo, which puts every
// claim back.

// Bundle is a change of a switch that happens whole or not at all. Entries,
// groups and meters are not written after they were handed over.
type Bundle struct {
	// Names and First, when Names is not nil, are the pipeline's names of
	// tables and ports from now on, and the table that packets enter at.
	Names *flow.Names
	First uint8
	// Add installs entries; one with the identity of an installed entry takes
	// its place and counts on.
	Add []*flow.Entry
	// Delete removes entries.
	Delete []*flow.Entry
	// Groups and Meters are new, or take the place of those with their ID.
	Groups       []*flow.Group
	Meters       []*flow.Meter
	DeleteGroups []uint32
	DeleteMeters []uint32
}

// Empty reports whether the bundle changes nothing.
func (b *Bundle) Empty() bool {
	return b.Names == nil && len(b.Add)+len(b.Delete)+len(b.Groups)+len(b.Meters)+
		len(b.DeleteGroups)+len(b.DeleteMeters) == 0
}

// ledgerStep is one step. Rows are kept in the order in which they were
// touched, so the same step makes the same bundle.
type ledgerStep struct {
	l       *ledger
	seen    map[*row]bool
	rows    []*row
	results []*flow.Entry // what rows come to, once bundle was called
	groups  []uint32
	meters  []uint32
	before  map[Part]*Desired // what parts claimed before the step
	order   []Part            // of before
	sets    map[Part]bool     // whose clauses moved
}

func (l *ledger) step() *ledgerStep {
	return &ledgerStep{l: l, seen: map[*row]bool{}, before: map[Part]*Desired{}, sets: map[Part]bool{}}
}

// set makes a part claim d instead of what it claimed; nil: nothing. After a
// clash, it claims what it claimed before.
func (s *ledgerStep) set(p Part, d *Desired) error {
	was := s.l.desired(p)
	if _, ok := s.before[p]; !ok {
		s.before[p] = was
		s.order = append(s.order, p)
	}
	err := s.replace(p, d)
	if err != nil {
		s.release(p)
		if again := s.replace(p, was); again != nil {
			panic("control: claims that were there clash: " + again.Error())
		}
	}
	return err
}

// replace moves the claims of a part from what it wants to d. After a clash, the
// claims that could be made are made; release takes them back.
func (s *ledgerStep) replace(p Part, d *Desired) error {
	if d == nil {
		s.release(p)
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

func (s *ledgerStep) claimEntry(c *claimant, w Wanted) error {
	r := s.l.open(w.Entry)
	s.touch(r)
	if c := r.admits(claim{c, w}); c != nil {
		return errors.New(c.text(s.l.names))
	}
	r.add(claim{c, w})
	return nil
}

func (s *ledgerStep) touch(r *row) {
	if !s.seen[r] {
		s.seen[r] = true
		s.rows = append(s.rows, r)
	}
}

// claimIDs claims the groups and meters of a part.
func (s *ledgerStep) claimIDs(c *claimant) error {
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

// release takes away all claims of a part.
func (s *ledgerStep) release(p Part) {
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
	s.l.leave(p)
}

// drop takes away claims of entries, as far as they were made.
func (s *ledgerStep) drop(c *claimant, entries []Wanted) {
	for _, w := range entries {
		if r := s.l.find(w.Entry); r != nil {
			s.touch(r)
			r.drop(c, w.Entry)
		}
	}
}

// dropIDs takes away claims of d's groups and meters, as far as they were made.
func (s *ledgerStep) dropIDs(c *claimant, d *Desired) {
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

// bundle is what the step changes in the switch.
func (s *ledgerStep) bundle() *Bundle {
	b := &Bundle{}
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

// keep notes that the switch has taken the step's bundle.
func (s *ledgerStep) keep() {
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

// undo puts back all claims as they were before the step.
func (s *ledgerStep) undo() {
	for _, p := range s.order {
		s.release(p)
	}
	for _, p := range s.order {
		if err := s.replace(p, s.before[p]); err != nil {
			panic("control: claims that were there clash: " + err.Error())
		}
	}
	for _, r := range s.rows {
		if r.has == nil && len(r.claims) == 0 {
			s.l.forget(r)
		}
	}
	s.forgetSets()
}
