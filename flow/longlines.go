package flow

import (
	"fmt"
	"iter"
	"slices"
)

// A line holds up to 65,535 bytes, but some entries and groups need more. Examples are a group of
// a thousand endpoints, and an entry that is a clause of thousands of conjunctions. Their text
// is several lines of the same identity. Each line can be read by itself, and Join puts the parts
// together.

// perLine is how many buckets of a group, or conjunctions of an entry, share a line.
const perLine = 100

// Parts cuts the entry into entries that each fit in a line. Only an entry with more than 100
// conjunctions has several parts. They have the same identity, and their actions follow each
// other. A part must not be changed.
func (e *Entry) Parts() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		if len(e.Actions) <= perLine || slices.ContainsFunc(e.Actions, notConjunction) {
			yield(e)
			return
		}
		for actions := range slices.Chunk(e.Actions, perLine) {
			part := *e
			part.Actions = actions
			if !yield(&part) {
				return
			}
		}
	}
}

func notConjunction(a Action) bool { return !isConjunction(a) }

// Join appends the actions of the next part to those of e. If next is not a part of the same
// entry, it returns an error and e stays unchanged.
func (e *Entry) Join(next *Entry) error {
	switch {
	case e.Identity() != next.Identity():
		return fmt.Errorf("%q has another table, priority or match than the part before", next)
	case e.Cookie != next.Cookie || e.IdleTimeout != next.IdleTimeout || e.HardTimeout != next.HardTimeout || e.SendFlowRem != next.SendFlowRem:
		return fmt.Errorf("%q has another cookie, timeout or flag than the part before", next)
	case len(next.Actions) == 0, slices.ContainsFunc(next.Actions, notConjunction),
		len(e.Actions) == 0, notConjunction(e.Actions[len(e.Actions)-1]):
		return fmt.Errorf("%q or the part before has other actions than conjunctions, and cannot be joined", next)
	}
	e.Actions = append(e.Actions, next.Actions...)
	return nil
}

// Parts cuts the group into groups of up to 100 buckets, which each fit in a line. A part must
// not be changed.
func (g *Group) Parts() iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		if len(g.Buckets) <= perLine {
			yield(g)
			return
		}
		for buckets := range slices.Chunk(g.Buckets, perLine) {
			if !yield(&Group{ID: g.ID, Type: g.Type, Buckets: buckets}) {
				return
			}
		}
	}
}

// Join appends the buckets of the next part to those of g. If next is not a part of the same
// group, it returns an error and g stays unchanged.
func (g *Group) Join(next *Group) error {
	if g.ID != next.ID || g.Type != next.Type {
		return fmt.Errorf("group %d, type %v, is not a part of group %d, type %v", next.ID, next.Type, g.ID, g.Type)
	}
	g.Buckets = append(g.Buckets, next.Buckets...)
	return nil
}
