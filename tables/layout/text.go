package layout

import (
	"slices"

	"github.com/antrail/antrail/flow"
)

// MarkNames describes the value of a register, ct_mark, ct_label or pkt_mark with the names of a
// program. Dumps have numbers, as those of ovs-ofctl. Code that shows an entry or a packet to a
// person puts these words beside them. The first of Programs that has a table names its
// registers. For a table that no program has, MarkNames returns nothing.
type MarkNames struct {
	*flow.Names
	Programs []*Program
}

// of is the program of a table, or nil if no program has it.
func (n MarkNames) of(tableID uint8) *Program {
	in := n.Table(tableID)
	if i := slices.IndexFunc(n.Programs, func(p *Program) bool { return p.Stage(in) != "" }); i >= 0 {
		return n.Programs[i]
	}
	return nil
}

// texts describes the value of bits in a table: FromPodRegMark, EndpointPortField=80.
func (n MarkNames) texts(tableID uint8, b Bits) (all []string) {
	p := n.of(tableID)
	if p == nil {
		return nil
	}
	marks, in := p.Marks, n.Table(tableID)
	for _, bits := range marks.Named(b, func(f Field) bool { return marks.Meant(f, in) }) {
		all = append(all, marks.Text(bits, n.Names))
	}
	return all
}

// Match describes a match's registers and marks.
func (n MarkNames) Match(tableID uint8, m flow.Minimatch) (all []string) {
	p := n.of(tableID)
	if p == nil {
		return nil
	}
	for _, id := range p.Marks.ids {
		if v, mask := m.Get(id); !mask.IsZero() {
			all = append(all, n.texts(tableID, Bits{id, mask, v, true})...)
		}
	}
	return all
}

// Sets describes the registers and marks that actions write, those in ct() and clone() too. A
// field that is copied from elsewhere has only its name.
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

// Change describes how a register or mark changed: each named field with a changed bit, with its
// new value.
func (n MarkNames) Change(tableID uint8, id flow.FieldID, before, after flow.Value) []string {
	p := n.of(tableID)
	if p == nil {
		return nil
	}
	marks := p.Marks
	changed, in := before.AndNot(after).Or(after.AndNot(before)), n.Table(tableID)
	var mask flow.Value
	for _, f := range marks.byField[id] {
		if m := f.Mask(); marks.Meant(f, in) && !marks.isWhole(f, in) && !changed.And(m).IsZero() {
			mask = mask.Or(m)
		}
	}
	return n.texts(tableID, Bits{id, mask, after, true})
}

// Conn describes a connection's mark and label for the first program, if its first table exists.
func (n MarkNames) Conn(mark uint32, label flow.Value) (all []string) {
	if len(n.Programs) == 0 {
		return nil
	}
	p := n.Programs[0]
	if _, ours := n.TableID(p.Tables[0].Name); !ours {
		return nil
	}
	value := flow.Value{Lo: uint64(mark)}
	for _, b := range []Bits{{flow.CTMark, value, value, true}, {flow.CTLabel, label, label, true}} {
		for _, bits := range p.Marks.Named(b, func(Field) bool { return true }) {
			all = append(all, p.Marks.Text(bits, n.Names))
		}
	}
	return all
}
