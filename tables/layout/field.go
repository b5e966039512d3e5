package layout

import (
	"maps"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Field is a named range of bits of a register, of ct_mark or of ct_label.
type Field struct {
	Name string
	flow.Subfield
	// Union names the fields that share bits on purpose. Fields of one union are never used at
	// the same time, or are parts and whole.
	Union string
}

// Mark is a named value of a field.
type Mark struct {
	Name  string
	Field Field
	Value uint64
}

// Reg makes a field of bits first to last of a register.
func Reg(n uint8, name string, first, last uint8) Field {
	return Field{Name: name, Subfield: Range(flow.Reg0+flow.FieldID(n), first, last)}
}

// Range is bits first to last of a field.
func Range(id flow.FieldID, first, last uint8) flow.Subfield {
	return flow.Subfield{Field: id, Ofs: first, N: last - first + 1}
}

// Of makes a field part of a union.
func (f Field) Of(union string) Field {
	f.Union = union
	return f
}

// Mark names a value of the field.
func (f Field) Mark(name string, value uint64) Mark { return Mark{name, f, value} }

// Is matches a value of a field.
func (f Field) Is(v uint64) Term {
	return func(m *flow.Match) { m.Add(f.Subfield.Field, flow.Value{Lo: v}.Shl(int(f.Ofs)), f.Subfield.Mask()) }
}

// Is matches a mark.
func (k Mark) Is() Term { return k.Field.Is(k.Value) }

// Set writes a value into a field.
func (f Field) Set(v uint64) flow.Action {
	return flow.SetField{Field: f.Subfield.Field, Value: flow.Value{Lo: v}.Shl(int(f.Ofs)), Mask: f.Subfield.Mask()}
}

// Set writes a mark.
func (k Mark) Set() flow.Action { return k.Field.Set(k.Value) }

// Marks are the meanings that a program gives to bits.
type Marks struct {
	Fields []Field
	Marks  []Mark
	// Second lists, by the field's name, the tables where the second field of a union applies. In
	// all others the first one does.
	Second map[string][]string
	// Value is a field's value in words; "" writes it as a number. It may be nil.
	Value func(n NamedBits, names *flow.Names) string

	byField map[flow.FieldID][]Field
	names   map[string]map[uint64]string
	ids     []flow.FieldID // the fields that have named fields, in order
}

// NewMarks indexes fields and marks. They must not change afterwards.
func NewMarks(m Marks) *Marks {
	m.byField, m.names = map[flow.FieldID][]Field{}, map[string]map[uint64]string{}
	for _, f := range m.Fields {
		m.byField[f.Subfield.Field] = append(m.byField[f.Subfield.Field], f)
		m.names[f.Name] = map[uint64]string{}
	}
	for _, k := range m.Marks {
		m.names[k.Field.Name][k.Value] = k.Name
	}
	m.ids = slices.Sorted(maps.Keys(m.byField))
	return &m
}

// Of is the name of a field's value, "" if it has none.
func (m *Marks) Of(f Field, v flow.Value) string {
	if v.Hi != 0 {
		return ""
	}
	return m.names[f.Name][v.Lo]
}
