package datum

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Names maps a transaction's "uuid-name"s to UUIDs. With nil, names are errors.
type Names func(name string) ID

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// JSON is the JSON of an atom (RFC 7047 section 5.1).
func (a Atom) JSON() any {
	switch a.Kind {
	case Integer:
		return a.Num
	case Boolean:
		return a.Num != 0
	case String:
		return a.Str
	}
	return [2]string{"uuid", a.ID.String()}
}

// JSONOf is the JSON of a datum. A set of one atom is the atom.
func (t *Type) JSONOf(d Datum) any {
	if t.Value != nil {
		pairs := make([]any, len(d.Keys))
		for i, k := range d.Keys {
			pairs[i] = [2]any{k.JSON(), d.Values[i].JSON()}
		}
		return [2]any{"map", pairs}
	}
	if len(d.Keys) == 1 {
		return d.Keys[0].JSON()
	}
	atoms := make([]any, len(d.Keys))
	for i, k := range d.Keys {
		atoms[i] = k.JSON()
	}
	return [2]any{"set", atoms}
}

// Parse reads a datum of the column's kinds. It does not check the constraints (Check), because
// conditions may name values that a row may not have.
func (t *Type) Parse(v any, names Names) (Datum, error) {
	if t.Value != nil {
		return t.parseMap(v, names)
	}
	elements := []any{v}
	if list, ok := tagged(v, "set"); ok {
		elements = list
	}
	d := Datum{}
	for _, e := range elements {
		a, err := t.Key.parse(e, names)
		if err != nil {
			return Datum{}, err
		}
		d.Keys = append(d.Keys, a)
	}
	err := d.sort()
	return d, err
}

// ParseKeys reads a set of a map's keys.
func (t *Type) ParseKeys(v any, names Names) (Datum, error) {
	set := Type{Key: t.Key, Max: Unlimited}
	return set.Parse(v, names)
}

func (t *Type) parseMap(v any, names Names) (d Datum, err error) {
	pairs, ok := tagged(v, "map")
	if !ok {
		return d, Syntaxf(`found %s, expected ["map", [[KEY, VALUE], …]]`, brief(v))
	}
	d.Values = []Atom{}
	for _, p := range pairs {
		pair, ok := p.([]any)
		if !ok || len(pair) != 2 {
			return d, Syntaxf("%s is not a pair of a map", brief(p))
		}
		k, err := t.Key.parse(pair[0], names)
		if err != nil {
			return d, err
		}
		value, err := t.Value.parse(pair[1], names)
		if err != nil {
			return d, err
		}
		d.Keys, d.Values = append(d.Keys, k), append(d.Values, value)
	}
	err = d.sort()
	return d, err
}

// tagged returns the list of ["set", LIST] or ["map", LIST].
func tagged(v any, tag string) ([]any, bool) {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 || pair[0] != tag {
		return nil, false
	}
	list, ok := pair[1].([]any)
	return list, ok
}

// IsMap reports whether a JSON value is written as a map.
func IsMap(v any) bool { _, ok := tagged(v, "map"); return ok }

// sort sorts a datum that was read. A repeated key is an error.
func (d *Datum) sort() error {
	order := make([]int, len(d.Keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return Compare(d.Keys[i], d.Keys[j]) })
	var out Datum
	for n, i := range order {
		if n > 0 && d.Keys[i] == out.Keys[n-1] {
			return Syntaxf("%s is given twice", brief(d.Keys[i].JSON()))
		}
		out.add(d, i)
	}
	*d = out
	return nil
}

func (b *Base) parse(v any, names Names) (Atom, error) {
	switch b.Kind {
	case Integer:
		if n, ok := integer(v); ok {
			return Int(n), nil
		}
	case Boolean:
		if f, ok := v.(bool); ok {
			return Bool(f), nil
		}
	case String:
		// C programs read strings up to the first NUL.
		if s, ok := v.(string); ok && !strings.Contains(s, "\x00") {
			return Text(s), nil
		}
	case UUID:
		return parseRef(v, names)
	}
	return Atom{}, Syntaxf("found %s, expected %s", brief(v), b.Kind)
}

// integer reads a number without a fraction that fits 64 bits.
func integer(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

func parseRef(v any, names Names) (Atom, error) {
	pair, _ := v.([]any)
	if len(pair) == 2 {
		s, ok := pair[1].(string)
		switch {
		case ok && pair[0] == "uuid":
			id, err := ParseID(s)
			return Ref(id), err
		case ok && pair[0] == "named-uuid" && names != nil:
			return Ref(names(s)), nil
		}
	}
	return Atom{}, Syntaxf(`found %s, expected ["uuid", UUID]`, brief(v))
}

// brief is a JSON value for an error: its first bytes.
func brief(v any) string {
	const most = 80
	b, err := json.Marshal(v)
	if err != nil {
		return "a value"
	}
	if len(b) > most {
		return string(b[:most]) + "…"
	}
	return string(b)
}
