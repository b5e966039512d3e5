package program

import (
	"iter"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/flow"
)

// Program is the compiled pipeline that packets walk. It is immutable: a bundle makes another
// one, and one atomic store publishes that. So a packet sees the whole pipeline either before or
// after a change.
type Program struct {
	Names         *flow.Names
	First         uint8
	Tables        [256]*lookup.Table // nil: no such table
	Groups        *numbered[Group]
	Meters        *numbered[Meter]
	UsesFlowLabel bool // an entry may read IPv6's flow label (flowlabel.go)
	FirstLearner  bool // the bundle brought the first learn action of a table
	Generation    uint64
}

// Build makes the next program from p and a bundle, whose entries c compiles. The programs share
// everything that the bundle does not change, so a small change of a large program is cheap. The
// error joins an InvalidEntryError for each invalid entry or group.
func (p *Program) Build(b *flow.Bundle, c *Compiler, now int64) (*Program, error) {
	n := &Program{Names: p.Names, First: p.First, UsesFlowLabel: p.UsesFlowLabel || usesFlowLabel(b), Generation: p.Generation + 1}
	if b.Names != nil {
		n.Names, n.First = b.Names, b.First
	}
	n.Groups = merge(p.Groups, b.Groups, b.DeleteGroups, b.Replace, newGroup, func(g *flow.Group) uint32 { return g.ID })
	n.Meters = merge(p.Meters, b.Meters, b.DeleteMeters, b.Replace, newMeter, func(m *flow.Meter) uint32 { return m.ID })
	p.buildTables(n, b, c, now)
	return n, n.validate(b, p.Names)
}

// merge returns the groups or meters after a bundle. make_ gets the old one, or nil, and keeps
// its counters.
func merge[T, S any](old *numbered[T], add []*S, del []uint32, replace bool, make_ func(*S, *T) *T, id func(*S) uint32) *numbered[T] {
	if len(add)+len(del) == 0 && !replace {
		return old
	}
	n := old.edited()
	if replace {
		n = (*numbered[T])(nil).edited()
	}
	for _, k := range del {
		n.set(k, nil)
	}
	for _, s := range add {
		n.set(id(s), make_(s, old.Get(id(s))))
	}
	return n.made
}

// buildTables fills n's tables. It shares unchanged ones with p.
func (p *Program) buildTables(n *Program, b *flow.Bundle, c *Compiler, now int64) {
	edited := make(map[uint8]*lookup.Table)
	edit := func(id uint8) *lookup.Table {
		if edited[id] == nil {
			edited[id] = p.Tables[id].Editable(!b.Replace)
		}
		return edited[id]
	}
	for id, t := range p.Tables {
		if b.Replace && t != nil {
			edit(uint8(id))
		}
	}
	deleted := make(map[*lookup.Entry]bool, len(b.Delete))
	for _, e := range b.Delete {
		if old := p.installed(e); old != nil && !b.Replace {
			edit(e.Table).Remove(old)
			deleted[old] = true
		}
	}
	for to, n := range addedMasks(b) {
		edit(to.table).Static.Expect(to.mask, n)
	}
	for ne := range c.entries(b.Add, now) {
		if old := p.installed(ne.Entry); old != nil && !deleted[old] {
			ne.Inherit(old)
		}
		edit(ne.Table).Add(ne)
	}
	n.Tables = p.Tables
	for id, t := range edited {
		t.Static.Sort()
		n.Tables[id] = t
	}
	n.declareTables(b)
}

// tableMask is a mask in a table.
type tableMask struct {
	table uint8
	mask  flow.Minimask
}

// addedMasks counts the entries that a bundle adds by their masks.
func addedMasks(b *flow.Bundle) map[tableMask]int {
	all := map[tableMask]int{}
	for _, e := range b.Add {
		all[tableMask{e.Table, e.Match.Mask()}]++
	}
	return all
}

// installed finds the static entry with the identity of e.
func (p *Program) installed(e *flow.Entry) *lookup.Entry {
	if t := p.Tables[e.Table]; t != nil {
		return t.Static.Installed(e.Match, e.Priority)
	}
	return nil
}

// EachTable iterates over the tables that exist, by number.
func (p *Program) EachTable() iter.Seq2[uint8, *lookup.Table] {
	return func(yield func(uint8, *lookup.Table) bool) {
		for id, t := range p.Tables {
			if t != nil && !yield(uint8(id), t) {
				return
			}
		}
	}
}

// declareTables makes an empty table for each name, and for each table in which an action of
// the bundle continues or learns. Lookups, counters and learned entries then have a place.
func (p *Program) declareTables(b *flow.Bundle) {
	if b.Names != nil || p.Generation == 1 {
		p.nameTables()
	}
	forEachBundleAction(b, func(a flow.Action) {
		if id, ok := tableOf(a); ok && p.Tables[id] == nil {
			p.Tables[id] = (*lookup.Table)(nil).Editable(false)
		}
		if l, ok := a.(*flow.Learn); ok {
			p.FirstLearner = !p.Tables[l.Table].Live.MayLearn.Swap(true) || p.FirstLearner
		}
	})
}

// nameTables makes an empty table for the first table and for each name.
func (p *Program) nameTables() {
	for id := range p.Tables {
		if p.Tables[id] == nil && (p.Names.Table(uint8(id)) != "" || uint8(id) == p.First) {
			p.Tables[id] = (*lookup.Table)(nil).Editable(false)
		}
	}
}

// tableOf returns the table in which an action continues or learns.
func tableOf(a flow.Action) (uint8, bool) {
	switch a := a.(type) {
	case flow.GotoTable:
		return a.Table, true
	case flow.Resubmit:
		return a.Table, a.Table != flow.CurrentTable
	case *flow.CT:
		return a.Table, a.Table != flow.NoTable
	case *flow.Learn:
		return a.Table, true
	}
	return 0, false
}
