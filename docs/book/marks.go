package main

import (
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/layout"
)

// Names of the bits of registers, ct_mark, ct_label and pkt_mark, and of their values.

// namesOf are the named fields of some bits. If fields share bits, it returns those that the head
// of the reading table names.
func namesOf(b layout.Bits, s *tableSource) []layout.NamedBits {
	return tables.Program.Marks.Named(b, func(f tables.Field) bool { return s != nil && s.says(f.Name) })
}

// overlap reports whether two fields share bits and are not two names of the same bits.
func overlap(a, b tables.Field) bool {
	same := a.Subfield == b.Subfield
	return a.Name == b.Name || !same && a.Subfield.Field == b.Subfield.Field && !a.Mask().And(b.Mask()).IsZero()
}

// examinedBits are the bits that a match examines.
func examinedBits(m flow.Minimatch) (all []layout.Bits) {
	for id := range marked {
		if v, mask := m.Get(id); !mask.IsZero() {
			all = append(all, layout.Bits{Field: id, Mask: mask, Value: v, Known: true})
		}
	}
	slices.SortFunc(all, func(a, b layout.Bits) int { return int(a.Field) - int(b.Field) })
	return all
}

// marked are the registers and marks that have named fields.
var marked = func() map[flow.FieldID]bool {
	all := make(map[flow.FieldID]bool)
	for _, f := range tables.Fields() {
		all[f.Subfield.Field] = true
	}
	return all
}()

// effect is the named bits that actions read and write.
type effect struct{ reads, writes []layout.Bits }

func (x *effect) read(s flow.Subfield) {
	x.reads = append(x.reads, layout.Bits{Field: s.Field, Mask: s.Mask()})
}

func (x *effect) write(id flow.FieldID, value, mask flow.Value, known bool) {
	x.writes = append(x.writes, layout.Bits{Field: id, Mask: mask, Value: value, Known: known})
}

// actions adds the effects of actions, with those of the groups that they name.
func (x *effect) actions(p *pipe, actions []flow.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case flow.SetField:
			x.write(a.Field, a.Value, a.Mask, true)
		case flow.Load:
			x.write(a.Dst.Field, a.Value.Shl(int(a.Dst.Ofs)), a.Dst.Mask(), true)
		case flow.Move:
			x.read(a.Src)
			x.write(a.Dst.Field, flow.Value{}, a.Dst.Mask(), false)
		case flow.OutputReg:
			x.read(a.Src)
		case *flow.CT:
			if a.ZoneSrc != nil {
				x.read(*a.ZoneSrc)
			}
			x.actions(p, a.Exec)
		case flow.Clone:
			x.actions(p, a.Actions)
		case *flow.Learn:
			x.learn(a)
		case flow.GroupAction:
			for _, b := range p.groups[a.ID].Buckets {
				x.actions(p, b.Actions)
			}
		}
	}
}

// learn adds the bits that a learn action reads. The learned entries write in their own table.
func (x *effect) learn(a *flow.Learn) {
	for _, s := range a.Specs {
		if s.FromField {
			x.read(s.Src)
		}
	}
}
