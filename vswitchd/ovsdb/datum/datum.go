package datum

import (
	"maps"
	"slices"
)

// Datum is the value of a column: a set or a map. Its keys are sorted and unique.
type Datum struct {
	Keys   []Atom
	Values []Atom // beside Keys; nil for a set
}

// One is a set of one atom.
func One(a Atom) Datum { return Datum{Keys: []Atom{a}} }

// Set is a set of atoms, of which some may be equal.
func Set(atoms ...Atom) Datum {
	d := Datum{Keys: slices.SortedFunc(slices.Values(atoms), Compare)}
	d.Keys = slices.Compact(d.Keys)
	return d
}

// Texts is a set of strings.
func Texts(all ...string) Datum {
	atoms := make([]Atom, len(all))
	for i, s := range all {
		atoms[i] = Text(s)
	}
	return Set(atoms...)
}

// TextMap is a map of strings to strings.
func TextMap(m map[string]string) Datum {
	d := Datum{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d.Keys, d.Values = append(d.Keys, Text(k)), append(d.Values, Text(m[k]))
	}
	return d
}

// IntMap is a map of strings to integers.
func IntMap(m map[string]int64) Datum {
	d := Datum{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d.Keys, d.Values = append(d.Keys, Text(k)), append(d.Values, Int(m[k]))
	}
	return d
}

// Equal reports whether two data are the same.
func Equal(a, b Datum) bool {
	return slices.Equal(a.Keys, b.Keys) && slices.Equal(a.Values, b.Values)
}

// find returns the index of a key.
func (d *Datum) find(a Atom) (at int, found bool) { return slices.BinarySearchFunc(d.Keys, a, Compare) }

// value is the value beside a key: the zero Atom in a set.
func (d *Datum) value(i int) Atom {
	if d.Values == nil {
		return Atom{}
	}
	return d.Values[i]
}

// has reports whether the datum has a key, in a map with that value.
func (d *Datum) has(key, value Atom) bool {
	i, found := d.find(key)
	return found && d.value(i) == value
}

// Includes reports whether all of b is in a.
func Includes(a, b Datum) bool {
	for i, k := range b.Keys {
		if !a.has(k, b.value(i)) {
			return false
		}
	}
	return true
}

// Excludes reports whether nothing of b is in a.
func Excludes(a, b Datum) bool {
	for i, k := range b.Keys {
		if a.has(k, b.value(i)) {
			return false
		}
	}
	return true
}

// Filter has the pairs for which keep returns true. The value is the zero Atom in a set.
func (d *Datum) Filter(keep func(key, value Atom) bool) Datum {
	var out Datum
	for i, k := range d.Keys {
		if keep(k, d.value(i)) {
			out.add(d, i)
		}
	}
	return out
}

// add appends the pair of another datum at i. The caller keeps the order.
func (d *Datum) add(from *Datum, i int) {
	d.Keys = append(d.Keys, from.Keys[i])
	if from.Values != nil {
		d.Values = append(d.Values, from.Values[i])
	}
}

// Union is a with the pairs of b whose keys a lacks: the mutator "insert".
func Union(a, b Datum) Datum {
	return merge(a, b, func(Atom, Atom) bool { return true })
}

// merge joins two sorted data. If both have a key, keepA chooses between the pair of a and that of b.
func merge(a, b Datum, keepA func(va, vb Atom) bool) (out Datum) {
	i, j := 0, 0
	for i < len(a.Keys) || j < len(b.Keys) {
		switch order := side(a, b, i, j); {
		case order < 0:
			out.add(&a, i)
			i++
		case order > 0:
			out.add(&b, j)
			j++
		default:
			if keepA(a.value(i), b.value(j)) {
				out.add(&a, i)
			} else {
				out.add(&b, j)
			}
			i, j = i+1, j+1
		}
	}
	return out
}

// side is negative if a has the next key in order, positive if b has, and 0 if both have.
func side(a, b Datum, i, j int) int {
	switch {
	case i == len(a.Keys):
		return 1
	case j == len(b.Keys):
		return -1
	}
	return Compare(a.Keys[i], b.Keys[j])
}

// Subtract is a without the pairs in b: the mutator "delete" with a datum of the column's type.
func Subtract(a, b Datum) Datum {
	return a.Filter(func(k, v Atom) bool { return !b.has(k, v) })
}

// SubtractKeys is a without the pairs whose keys are in b: the mutator "delete" with a set of
// keys of a map.
func SubtractKeys(a, b Datum) Datum {
	return a.Filter(func(k, _ Atom) bool { _, found := b.find(k); return !found })
}
