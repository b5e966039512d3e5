package store

import (
	"math/bits"

	"github.com/antrail/antrail/vswitchd/ovsdb/datum"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
)

// mutation is a <mutation> of RFC 7047 section 5.1.
type mutation struct {
	place   int
	mutator string
	value   datum.Datum
	keys    bool // value is a set of keys of a map
}

// arithmetic are the mutators of integers.
var arithmetic = map[string]func(a, b int64) (int64, error){
	"+=": add,
	"-=": func(a, b int64) (int64, error) {
		if b == -b && b != 0 { // the least integer has no opposite
			return 0, outOfRange(a, b)
		}
		return add(a, -b)
	},
	"*=": multiply,
	"/=": func(a, b int64) (int64, error) {
		if b == 0 || b == -1 {
			return negate(a, b)
		}
		return a / b, nil
	},
	"%=": func(a, b int64) (int64, error) {
		switch b {
		case 0:
			return negate(a, b)
		case -1:
			return 0, nil
		}
		return a % b, nil
	},
}

func outOfRange(a, b int64) error {
	return datum.Errorf("range error", "the result of a mutation of %d by %d does not fit 64 bits", a, b)
}

func add(a, b int64) (int64, error) {
	sum := a + b
	if (sum > a) != (b > 0) && b != 0 {
		return 0, outOfRange(a, b)
	}
	return sum, nil
}

func multiply(a, b int64) (int64, error) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	switch {
	case high != 0 || low > 1<<63 || !negative && low == 1<<63:
		return 0, outOfRange(a, b)
	case negative:
		return -int64(low), nil
	}
	return int64(low), nil
}

// magnitude is the absolute value of any integer.
func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// negate divides by -1 or 0, the two divisors that may fail.
func negate(a, b int64) (int64, error) {
	if b == 0 {
		return 0, datum.Errorf("domain error", "%d is divided by zero", a)
	}
	return multiply(a, -1)
}

func (x *execution) parseMutations(t *schema.Table, v any) (all []mutation, err error) {
	list, ok := v.([]any)
	if !ok {
		return nil, datum.Syntaxf("\"mutations\" is an array of mutations")
	}
	for _, v := range list {
		m, err := x.parseMutation(t, v)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func (x *execution) parseMutation(t *schema.Table, v any) (m mutation, err error) {
	name, mutator, value, err := triple(v, "mutation")
	if err != nil {
		return m, err
	}
	if m.place, err = t.Place(name); err != nil {
		return m, err
	}
	if err = mutable(t, m.place); err != nil {
		return m, err
	}
	m.mutator = mutator
	if err = m.read(&t.Columns[m.place].Type, value, x.id); err != nil {
		return m, atColumn(t, m.place, err)
	}
	return m, nil
}

// read reads the value of a mutator.
func (m *mutation) read(t *datum.Type, v any, names datum.Names) (err error) {
	switch {
	case arithmetic[m.mutator] != nil && t.Key.Kind == datum.Integer && t.Value == nil:
		one := datum.Type{Key: datum.NewBase(datum.Integer), Min: 1, Max: 1}
		if m.value, err = one.Parse(v, nil); err == nil {
			err = one.Check(m.value)
		}
	case m.mutator == "delete" && t.Value != nil && !datum.IsMap(v):
		m.keys = true
		m.value, err = t.ParseKeys(v, names)
	case m.mutator == "insert" || m.mutator == "delete":
		if t.Min == 1 && t.Max == 1 {
			return datum.Syntaxf("mutator %q needs a set or a map", m.mutator)
		}
		m.value, err = t.Parse(v, names)
	case arithmetic[m.mutator] != nil:
		err = datum.Syntaxf("mutator %q needs a column of integers", m.mutator)
	default:
		err = datum.Errorf("unknown mutator", "there is no mutator %q", m.mutator)
	}
	return err
}

// apply changes a row of the transaction.
func (m *mutation) apply(r *Row) (err error) {
	old := r.Cells[m.place]
	next := datum.Datum{}
	switch {
	case m.keys:
		next = datum.SubtractKeys(old, m.value)
	case m.mutator == "insert":
		next = datum.Union(old, m.value)
	case m.mutator == "delete":
		next = datum.Subtract(old, m.value)
	default:
		if next, err = m.calculate(old); err != nil {
			return atColumn(r.Table, m.place, err)
		}
	}
	r.Cells[m.place] = next
	return checkCell(r.Table, m.place, next)
}

// calculate applies an arithmetic mutator to each integer of a set.
func (m *mutation) calculate(old datum.Datum) (datum.Datum, error) {
	var atoms []datum.Atom
	for _, k := range old.Keys {
		n, err := arithmetic[m.mutator](k.Num, m.value.Keys[0].Num)
		if err != nil {
			return datum.Datum{}, err
		}
		atoms = append(atoms, datum.Int(n))
	}
	return datum.Set(atoms...), nil
}
