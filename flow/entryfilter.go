package flow

import "slices"

// Filter chooses entries, as those of ovs-ofctl dump-flows and del-flows do. The zero value takes all.
type Filter struct {
	Table              *uint8 // nil for all; so are the others
	Priority           *uint16
	OutPort, OutGroup  *uint32
	Cookie, CookieMask uint64
	// Match takes entries whose match is as specific or more: OpenFlow's loose matching
	// (OpenFlow 1.5.1, section 6.4, "non-strict").
	Match Match
}

// Takes says whether an entry is chosen.
func (f *Filter) Takes(e *Entry) bool {
	return is(f.Table, e.Table) && is(f.Priority, e.Priority) && e.Cookie&f.CookieMask == f.Cookie && e.Match.Within(&f.Match) &&
		(f.OutPort == nil || contains(e.Actions, Output{Port: *f.OutPort})) &&
		(f.OutGroup == nil || contains(e.Actions, GroupAction{*f.OutGroup}))
}

// contains says whether an action is in a list, or in a clone() of it.
func contains(actions []Action, wanted Action) bool {
	return slices.ContainsFunc(actions, func(a Action) bool {
		if c, ok := a.(Clone); ok {
			return contains(c.Actions, wanted)
		}
		return a == wanted
	})
}

func is[T comparable](wanted *T, have T) bool { return wanted == nil || *wanted == have }

// Within says whether every packet that m matches is one that wider matches, field by field: m
// asks for all bits that wider asks for, with the same values.
func (m *Match) Within(wider *Match) bool {
	for i := range KeySize {
		if wider.Mask[i]&^m.Mask[i] != 0 || m.Value[i]&wider.Mask[i] != wider.Value[i] {
			return false
		}
	}
	return true
}
