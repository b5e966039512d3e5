package datum

import (
	"math"
	"slices"
	"strings"
)

// Base is the type of an atom.
type Base struct {
	Kind Kind
	// Least and Most bound an integer.
	Least, Most int64
	// Enum lists the strings that are allowed; nil allows all.
	Enum []string
	// Table is the table that a UUID refers to; "" if it refers to none.
	Table string
	// Weak is set if the row may be deleted while references exist, which are then removed.
	Weak bool
}

// Unlimited is the Max of a column that holds any number of atoms.
const Unlimited = math.MaxInt

// Type is the type of a column.
type Type struct {
	Key      Base
	Value    *Base // nil for a set
	Min, Max int
}

// NewBase makes a type without constraints.
func NewBase(k Kind) Base { return Base{Kind: k, Least: math.MinInt64, Most: math.MaxInt64} }

// IsComposite reports whether a column may hold more than one atom or pair.
func (t *Type) IsComposite() bool { return t.Max > 1 }

// Default is the value of a column that was not set (RFC 7047 section 5.2.1).
func (t *Type) Default() Datum {
	if t.Min == 0 {
		return Datum{}
	}
	d := Datum{Keys: []Atom{{Kind: t.Key.Kind}}}
	if t.Value != nil {
		d.Values = []Atom{{Kind: t.Value.Kind}}
	}
	return d
}

// Check reports the first constraint that a datum violates.
func (t *Type) Check(d Datum) error {
	if n := len(d.Keys); n < t.Min || n > t.Max {
		return Violationf("found %d values, allowed are %d to %s", n, t.Min, limit(t.Max))
	}
	for _, a := range d.Keys {
		if err := t.Key.check(a); err != nil {
			return err
		}
	}
	for _, a := range d.Values {
		if err := t.Value.check(a); err != nil {
			return err
		}
	}
	return nil
}

func limit(n int) string {
	if n == Unlimited {
		return "any number"
	}
	return string(appendInt(nil, int64(n)))
}

func (b *Base) check(a Atom) error {
	switch {
	case a.Kind == Integer && (a.Num < b.Least || a.Num > b.Most):
		return Violationf("%d is not in the range from %d to %d", a.Num, b.Least, b.Most)
	case a.Kind == String && b.Enum != nil && !slices.Contains(b.Enum, a.Str):
		return Violationf("%q is none of the allowed values: %s", a.Str, strings.Join(b.Enum, ", "))
	}
	return nil
}

// JSON is the JSON of the type in a schema (RFC 7047 section 3.2).
func (t *Type) JSON() any {
	if t.Value == nil && t.Min == 1 && t.Max == 1 && t.Key.isPlain() {
		return t.Key.Kind.String()
	}
	o := map[string]any{"key": t.Key.json()}
	if t.Value != nil {
		o["value"] = t.Value.json()
	}
	if t.Min != 1 {
		o["min"] = t.Min
	}
	switch {
	case t.Max == Unlimited:
		o["max"] = "unlimited"
	case t.Max != 1:
		o["max"] = t.Max
	}
	return o
}

func (b *Base) isPlain() bool {
	return b.Least == math.MinInt64 && b.Most == math.MaxInt64 && b.Enum == nil && b.Table == ""
}

func (b *Base) json() any {
	if b.isPlain() {
		return b.Kind.String()
	}
	o := map[string]any{"type": b.Kind.String()}
	if b.Least != math.MinInt64 {
		o["minInteger"] = b.Least
	}
	if b.Most != math.MaxInt64 {
		o["maxInteger"] = b.Most
	}
	if b.Enum != nil {
		o["enum"] = []any{"set", b.Enum}
	}
	if b.Table != "" {
		o["refTable"] = b.Table
	}
	if b.Weak {
		o["refType"] = "weak"
	}
	return o
}
