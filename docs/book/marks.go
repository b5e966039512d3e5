package main

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// What bits of registers, ct_mark, ct_label and pkt_mark are called, and what
// their values mean.

// bits are some bits of a field, with a value when it is known.
type bits struct {
	field       flow.FieldID
	mask, value flow.Value
	known       bool
}

// named is a named field and its value.
type named struct {
	tables.Field
	value flow.Value
	known bool
}

// names are the named fields that bits are of. Of fields that share bits those
// are meant that the bits cover and the reader's own head speaks of.
func (b bits) names(s *tableSource) (all []named) {
	for _, f := range tables.Fields() {
		mask := f.Mask()
		if f.Subfield.Field == b.field && !b.mask.And(mask).IsZero() {
			all = append(all, named{f, b.value.And(mask).Shr(int(f.Ofs)), b.known})
		}
	}
	all = keep(all, func(n named) bool {
		return !slices.ContainsFunc(all, func(o named) bool { return b.covers(o) && contains(o.Subfield, n.Subfield) })
	})
	all = keep(all, func(n named) bool {
		return b.covers(n) || !slices.ContainsFunc(all, func(o named) bool { return contains(n.Subfield, o.Subfield) && b.covers(o) })
	})
	spoken := func(n named) bool { return s != nil && s.says(n.Name) }
	return keep(all, func(n named) bool {
		return spoken(n) || !slices.ContainsFunc(all, func(o named) bool { return o.Union == n.Union && o.Union != "" && spoken(o) })
	})
}

func keep(all []named, want func(named) bool) (some []named) {
	for _, n := range all {
		if want(n) {
			some = append(some, n)
		}
	}
	return some
}

func (b bits) covers(n named) bool { m := n.Mask(); return b.mask.And(m) == m }

// contains says whether a is more than b, and all of it.
func contains(a, b flow.Subfield) bool {
	return a.Field == b.Field && a.N > b.N && a.Ofs <= b.Ofs && a.Ofs+a.N >= b.Ofs+b.N
}

// overlap says whether two fields share bits without being two names for the
// same ones.
func overlap(a, b tables.Field) bool {
	same := a.Subfield == b.Subfield
	return a.Name == b.Name || !same && a.Subfield.Field == b.Subfield.Field && !a.Mask().And(b.Mask()).IsZero()
}

// text is the mark, or the field with its value.
func (n named) text(p *pipe) string {
	if !n.known {
		return n.Name
	}
	for _, m := range tables.Marks() {
		if m.Field.Name == n.Name && m.Value == n.value.Lo {
			return m.Name
		}
	}
	return n.Name + "=" + n.valueText(p)
}

func (n named) valueText(p *pipe) string {
	v := n.value
	switch n.Name {
	case tables.TargetOFPortField.Name, tables.TrafficControlTargetOFPortField.Name:
		if name := p.program.Names.Port(uint32(v.Lo)); name != "" {
			return name
		}
	case tables.EndpointIPField.Name:
		return netip.AddrFrom4([4]byte{byte(v.Lo >> 24), byte(v.Lo >> 16), byte(v.Lo >> 8), byte(v.Lo)}).String()
	case tables.EpUnionField.Name:
		return fmt.Sprintf("%s:%d", named{Field: tables.ServiceEPStateField, value: v.Shr(16), known: true}.text(p), v.Lo&0xffff)
	case tables.EndpointIP6Field.Name:
		k := flow.Key{}
		flow.FieldByID(flow.IPv6Src).Put(&k, v, flow.Ones(128))
		return flow.FieldText(flow.IPv6Src, &k, nil)[len("ipv6_src="):]
	}
	if v.Hi != 0 {
		return fmt.Sprintf("0x%x%016x", v.Hi, v.Lo)
	}
	return fmt.Sprint(v.Lo)
}

// asked are the bits that a match asks for.
func asked(m *flow.Match) (all []bits) {
	for id := range marked {
		if v, mask := m.Get(id); !mask.IsZero() {
			all = append(all, bits{id, mask, v, true})
		}
	}
	slices.SortFunc(all, func(a, b bits) int { return int(a.field) - int(b.field) })
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

// effect is what actions read and write of named bits.
type effect struct{ reads, writes []bits }

func (x *effect) read(s flow.Subfield) {
	x.reads = append(x.reads, bits{field: s.Field, mask: s.Mask()})
}

func (x *effect) write(id flow.FieldID, value, mask flow.Value, known bool) {
	x.writes = append(x.writes, bits{id, mask, value, known})
}

// actions adds what actions do, those of the groups that they name too.
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

// learn reads what it puts into entries. They write in their own table.
func (x *effect) learn(a *flow.Learn) {
	for _, s := range a.Specs {
		if s.FromField {
			x.read(s.Src)
		}
	}
}
