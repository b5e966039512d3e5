package tables

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Bits in words: what is in a register, ct_mark, ct_label or pkt_mark, by the names of
// fields.go. Dumps have numbers, as those of ovs-ofctl; whoever shows an entry or a
// packet to a person puts these words beside them.

// Bits are some bits of a field, with their value when it is known.
type Bits struct {
	Field flow.FieldID
	Mask  flow.Value
	Value flow.Value // in its place in the field, as in a match
	Known bool
}

// NamedBits is a named field, and its value when that is known.
type NamedBits struct {
	Field
	Value flow.Value
	Known bool
}

// Named are the named fields that bits are of. Of a whole and its parts it is the
// one that the bits cover. Of other fields that share bits it is the one that spoken
// says is meant; all of them where it says so of none.
func (b Bits) Named(spoken func(Field) bool) (all []NamedBits) {
	for _, f := range fieldsOf[b.Field] {
		mask := f.Mask()
		if !b.Mask.And(mask).IsZero() {
			all = append(all, NamedBits{f, b.Value.And(mask).Shr(int(f.Ofs)), b.Known})
		}
	}
	all = without(all, func(n NamedBits) bool {
		return slices.ContainsFunc(all, func(o NamedBits) bool { return b.covers(o) && contains(o.Subfield, n.Subfield) })
	})
	all = without(all, func(n NamedBits) bool {
		return !b.covers(n) && slices.ContainsFunc(all, func(o NamedBits) bool { return contains(n.Subfield, o.Subfield) && b.covers(o) })
	})
	return without(all, func(n NamedBits) bool {
		return n.Union != "" && !spoken(n.Field) && slices.ContainsFunc(all, func(o NamedBits) bool { return o.Union == n.Union && spoken(o.Field) })
	})
}

// without is what is left of a list, which stays as it is.
func without(all []NamedBits, not func(NamedBits) bool) []NamedBits {
	if !slices.ContainsFunc(all, not) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), not)
}

func (b Bits) covers(n NamedBits) bool { m := n.Mask(); return b.Mask.And(m) == m }

// contains says whether a is more than b, and all of it.
func contains(a, b flow.Subfield) bool {
	return a.Field == b.Field && a.N > b.N && a.Ofs <= b.Ofs && a.Ofs+a.N >= b.Ofs+b.N
}

// Text is the mark (FromPodRegMark), or the field with its value
// (EndpointPortField=80), or the field alone when the value is not known.
func (n NamedBits) Text(names *flow.Names) string {
	if !n.Known {
		return n.Name
	}
	if mark := markOf(n.Field, n.Value); mark != "" {
		return mark
	}
	return n.Name + "=" + n.valueText(names)
}

// markOf is the mark that a value of a field is; "" for none.
func markOf(f Field, v flow.Value) string {
	if v.Hi != 0 {
		return ""
	}
	return markNames[f.Name][v.Lo]
}

func (n NamedBits) valueText(names *flow.Names) string {
	v := n.Value
	switch n.Name {
	case TargetOFPortField.Name, TrafficControlTargetOFPortField.Name:
		if name := names.Port(uint32(v.Lo)); name != "" {
			return name
		}
	case PacketInTableField.Name:
		if name := names.Table(uint8(v.Lo)); name != "" {
			return name
		}
	case ConnSourceCTMarkField.Name: // a copy
		if mark := markOf(PktSourceField, v); mark != "" {
			return mark
		}
	case EndpointIPField.Name:
		return netip.AddrFrom4([4]byte{byte(v.Lo >> 24), byte(v.Lo >> 16), byte(v.Lo >> 8), byte(v.Lo)}).String()
	case EpUnionField.Name:
		state := NamedBits{ServiceEPStateField, v.Shr(16), true}
		return fmt.Sprintf("%s:%d", state.Text(names), v.Lo&0xffff)
	case EndpointIP6Field.Name:
		k := flow.Key{}
		flow.FieldByID(flow.IPv6Src).Put(&k, v, flow.Ones(128))
		return flow.FieldText(flow.IPv6Src, &k, nil)[len("ipv6_src="):]
	}
	if v.Hi != 0 {
		return fmt.Sprintf("0x%x%016x", v.Hi, v.Lo)
	}
	return fmt.Sprint(v.Lo)
}

// speaking are the tables where the second field of a union is meant; elsewhere it is
// the first one: reg3 has an endpoint but where policies decide, reg2 is for the agent
// but where ARP is answered.
var speaking = map[string][]table{
	APConjIDField.Name: {tableAntreaPolicyEgressRule, tableEgressMetric, tableAntreaPolicyIngressRule, tableIngressMetric},
	SwapField.Name:     {tableARPResponder},
}

// meant says whether a field of a union is the one that is meant in a table.
func meant(f Field, in string) bool {
	is := func(field Field) bool {
		return slices.ContainsFunc(speaking[field.Name], func(t table) bool { return declared[t].name == in })
	}
	if _, second := speaking[f.Name]; second {
		return is(f)
	}
	for _, o := range fieldsOf[f.Subfield.Field] {
		if o.Union == f.Union && is(o) {
			return false
		}
	}
	return true
}

// MarkNames tells marks by the names of tables and ports. It says nothing of tables of
// other pipelines, whose registers are their own business.
type MarkNames struct{ *flow.Names }

// texts says what the value of bits means in a table: FromPodRegMark,
// EndpointPortField=80.
func (n MarkNames) texts(tableID uint8, b Bits) (all []string) {
	in := n.Table(tableID)
	if Stage(in) == "" {
		return nil
	}
	for _, bits := range b.Named(func(f Field) bool { return meant(f, in) }) {
		all = append(all, bits.Text(n.Names))
	}
	return all
}

// Match says what a match asks for in registers and marks.
func (n MarkNames) Match(tableID uint8, m *flow.Match) (all []string) {
	for _, id := range markedFields {
		if v, mask := m.Get(id); !mask.IsZero() {
			all = append(all, n.texts(tableID, Bits{id, mask, v, true})...)
		}
	}
	return all
}

// Sets says what actions write into registers and marks, those of ct() and clone() too.
// What they copy from elsewhere has the field's name alone.
func (n MarkNames) Sets(tableID uint8, actions []flow.Action) (all []string) {
	add := func(id flow.FieldID, value, mask flow.Value, known bool) {
		all = append(all, n.texts(tableID, Bits{id, mask, value, known})...)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case flow.SetField:
			add(a.Field, a.Value, a.Mask, true)
		case flow.Load:
			add(a.Dst.Field, a.Value.Shl(int(a.Dst.Ofs)), a.Dst.Mask(), true)
		case flow.Move:
			add(a.Dst.Field, flow.Value{}, a.Dst.Mask(), false)
		case *flow.CT:
			all = append(all, n.Sets(tableID, a.Exec)...)
		case flow.Clone:
			all = append(all, n.Sets(tableID, a.Actions)...)
		}
	}
	return all
}

// Change says what of a register or mark is another now than before: each named field
// of which a bit changed, with its value of now.
func (n MarkNames) Change(tableID uint8, id flow.FieldID, before, after flow.Value) []string {
	changed, in := before.AndNot(after).Or(after.AndNot(before)), n.Table(tableID)
	var mask flow.Value
	for _, f := range fieldsOf[id] {
		if m := f.Mask(); meant(f, in) && !isWhole(f, in) && !changed.And(m).IsZero() {
			mask = mask.Or(m)
		}
	}
	return n.texts(tableID, Bits{id, mask, after, true})
}

// isWhole says whether a field has others as its parts in a table.
func isWhole(f Field, in string) bool {
	return slices.ContainsFunc(fieldsOf[f.Subfield.Field], func(part Field) bool { return contains(f.Subfield, part.Subfield) && meant(part, in) })
}

// Conn says what a connection's mark and label mean.
func (n MarkNames) Conn(mark uint32, label flow.Value) (all []string) {
	if !n.ours() {
		return nil
	}
	value := flow.Value{Lo: uint64(mark)}
	for _, b := range []Bits{{flow.CTMark, value, value, true}, {flow.CTLabel, label, label, true}} {
		for _, bits := range b.Named(func(Field) bool { return true }) {
			all = append(all, bits.Text(n.Names))
		}
	}
	return all
}

// ours says whether the tables are those of this pipeline, by the first of them.
func (n MarkNames) ours() bool {
	_, ok := n.TableID(declared[tablePipelineRootClassifier].name)
	return ok
}

// fieldsOf are the named fields of each register and mark; markNames are the marks of
// each field by their values.
var (
	fieldsOf  = map[flow.FieldID][]Field{}
	markNames = map[string]map[uint64]string{}
)

// markedFields are the registers and marks that have named fields, in order.
var markedFields = func() []flow.FieldID {
	for _, f := range Fields() {
		fieldsOf[f.Subfield.Field] = append(fieldsOf[f.Subfield.Field], f)
		markNames[f.Name] = map[uint64]string{}
	}
	for _, m := range Marks() {
		markNames[m.Field.Name][m.Value] = m.Name
	}
	return slices.Sorted(maps.Keys(fieldsOf))
}()
