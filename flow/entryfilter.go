package flow

import "slices"

// Filter chooses entries, as those of ovs-ofctl dump-flows and del-flows do. The zero value
// chooses all.
type Filter struct {
	Table              *uint8 // nil for all, as in the other fields
	Priority           *uint16
	OutPort, OutGroup  *uint32
	Cookie, CookieMask uint64
	// Match chooses entries whose match is as specific or more: OpenFlow's loose matching
	// (OpenFlow 1.5.1, section 6.4, "non-strict").
	Match Match
}

// Takes reports whether the filter chooses an entry.
func (f *Filter) Takes(e *Entry) bool {
	return is(f.Table, e.Table) && is(f.Priority, e.Priority) && e.Cookie&f.CookieMask == f.Cookie && e.Match.Within(&f.Match) &&
		(f.OutPort == nil || contains(e.Actions, Output{Port: *f.OutPort})) &&
		(f.OutGroup == nil || contains(e.Actions, GroupAction{*f.OutGroup}))
}

// contains reports whether an action is in a list, or in a clone() of it.
func contains(actions []Action, wanted Action) bool {
	return slices.ContainsFunc(actions, func(a Action) bool {
		if c, ok := a.(Clone); ok {
			return contains(c.Actions, wanted)
		}
		return a == wanted
	})
}

func is[T comparable](wanted *T, have T) bool { return wanted == nil || *wanted == have }

// Within reports whether wider matches every packet that m matches, field by field: m has all
// bits of wider's mask, with the same values.
func (m *Match) Within(wider *Match) bool {
	for i := range KeySize {
		if wider.Mask[i]&^m.Mask[i] != 0 || m.Value[i]&wider.Mask[i] != wider.Value[i] {
			return false
		}
	}
	return true
}
