package layout

import (
	"fmt"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Bits are some bits of a field, with their value if it is known.
type Bits struct {
	Field flow.FieldID
	Mask  flow.Value
	Value flow.Value // in its place in the field, as in a match
	Known bool
}

// NamedBits is a named field, with its value if it is known.
type NamedBits struct {
	Field
	Value flow.Value
	Known bool
}

// PortText is a Value of Marks that writes a field as the port's name.
func PortText(port Field) func(NamedBits, *flow.Names) string {
	return func(n NamedBits, names *flow.Names) string {
		if n.Name == port.Name {
			return names.Port(uint32(n.Value.Lo))
		}
		return ""
	}
}

// Named are the named fields of some bits. Of a whole and its parts it chooses the one that the
// bits cover. Of other fields that share bits it chooses those for which spoken is true, or all
// if it is true for none.
func (m *Marks) Named(b Bits, spoken func(Field) bool) (all []NamedBits) {
	for _, f := range m.byField[b.Field] {
		mask := f.Mask()
		if !b.Mask.And(mask).IsZero() {
			all = append(all, NamedBits{f, b.Value.And(mask).Shr(int(f.Ofs)), b.Known})
		}
	}
	all = without(all, func(n NamedBits) bool {
		return slices.ContainsFunc(all, func(o NamedBits) bool { return b.covers(o) && Contains(o.Subfield, n.Subfield) })
	})
	all = without(all, func(n NamedBits) bool {
		return !b.covers(n) && slices.ContainsFunc(all, func(o NamedBits) bool { return Contains(n.Subfield, o.Subfield) && b.covers(o) })
	})
	return without(all, func(n NamedBits) bool {
		return n.Union != "" && !spoken(n.Field) && slices.ContainsFunc(all, func(o NamedBits) bool { return o.Union == n.Union && spoken(o.Field) })
	})
}

// without is a list without some elements. The list itself stays unchanged.
func without(all []NamedBits, not func(NamedBits) bool) []NamedBits {
	if !slices.ContainsFunc(all, not) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), not)
}

func (b Bits) covers(n NamedBits) bool { m := n.Mask(); return b.Mask.And(m) == m }

// Contains reports whether a has all bits of b, and more.
func Contains(a, b flow.Subfield) bool {
	return a.Field == b.Field && a.N > b.N && a.Ofs <= b.Ofs && a.Ofs+a.N >= b.Ofs+b.N
}

// Text is the mark (FromPodRegMark), the field with its value (EndpointPortField=80), or only the
// field if the value is not known.
func (m *Marks) Text(n NamedBits, names *flow.Names) string {
	if !n.Known {
		return n.Name
	}
	if mark := m.Of(n.Field, n.Value); mark != "" {
		return mark
	}
	return n.Name + "=" + m.valueText(n, names)
}

func (m *Marks) valueText(n NamedBits, names *flow.Names) string {
	if m.Value != nil {
		if text := m.Value(n, names); text != "" {
			return text
		}
	}
	if n.Value.Hi != 0 {
		return fmt.Sprintf("0x%x%016x", n.Value.Hi, n.Value.Lo)
	}
	return fmt.Sprint(n.Value.Lo)
}

// Meant reports whether a field of a union applies in a table.
func (m *Marks) Meant(f Field, in string) bool {
	if tables, second := m.Second[f.Name]; second {
		return slices.Contains(tables, in)
	}
	for _, o := range m.byField[f.Subfield.Field] {
		if o.Union == f.Union && slices.Contains(m.Second[o.Name], in) {
			return false
		}
	}
	return true
}

// isWhole reports whether a field has others as its parts in a table.
func (m *Marks) isWhole(f Field, in string) bool {
	return slices.ContainsFunc(m.byField[f.Subfield.Field], func(part Field) bool { return Contains(f.Subfield, part.Subfield) && m.Meant(part, in) })
}
