package datum

// Diff is how to come from one datum to another (ovsdb-server(7), "update2"). A column that
// holds at most one atom has the new datum as its difference. A set has what is in one of
// both only. A map has each pair that went, came, or has another value, which is the new one.
func Diff(t *Type, from, to Datum) Datum {
	if !t.IsComposite() {
		return to
	}
	gone := from.Filter(func(k, _ Atom) bool { _, found := to.find(k); return !found })
	changed := to.Filter(func(k, v Atom) bool { return !from.has(k, v) })
	return Union(gone, changed)
}

// Apply follows a difference that Diff made.
func Apply(t *Type, from, diff Datum) Datum {
	if !t.IsComposite() {
		return diff
	}
	gone := diff.Filter(from.has)
	rest := SubtractKeys(from, gone)
	return merge(rest, SubtractKeys(diff, gone), func(Atom, Atom) bool { return false })
}
