package datum

// Diff is the difference from one datum to another (ovsdb-server(7), "update2"). For a column of at
// most one atom it is the new datum. For a set it has the atoms that are only in one of the two. For
// a map it has the removed pairs, the added pairs, and the changed pairs with their new values.
func Diff(t *Type, from, to Datum) Datum {
	if !t.IsComposite() {
		return to
	}
	gone := from.Filter(func(k, _ Atom) bool { _, found := to.find(k); return !found })
	changed := to.Filter(func(k, v Atom) bool { return !from.has(k, v) })
	return Union(gone, changed)
}

// Apply applies a difference of Diff.
func Apply(t *Type, from, diff Datum) Datum {
	if !t.IsComposite() {
		return diff
	}
	gone := diff.Filter(from.has)
	rest := SubtractKeys(from, gone)
	return merge(rest, SubtractKeys(diff, gone), func(Atom, Atom) bool { return false })
}
