package dataplane

import (
	"github.com/antrail/antrail/flow"
)

// program is the compiled pipeline: what packets walk. It never changes; a
// bundle makes a new one, and one atomic store publishes it, so a packet sees
// the whole pipeline before a change or after it.
type program struct {
	names      *flow.Names
	first      uint8
	tables     [256]*table // nil: no such table
	groups     *numbered[group]
	meters     *numbered[meter]
	labels     bool // an entry may ask for IPv6's flow label (flowlabel.go)
	learner    bool // the bundle brought the first learn action of a table
	generation uint64
}

// Bundle is a change of the pipeline that happens whole or not at all.
type Bundle struct {
	// Replace removes everything that the bundle does not name, but not what
	// packets learned: that goes with a learn action that says delete_learned,
	// or by its timeouts. An entry that
	// was there with the same table, priority and match keeps its counters.
	Replace bool
	// Names and First replace the program's when Names is not nil.
	Names *flow.Names
	First uint8
	// Add installs entries; one with the identity of an installed entry
	// modifies it. Neither they nor their actions are written from now on;
	// entries that do the same do well to hold one list of actions.
	Add []*flow.Entry
	// Delete removes entries by identity; their actions do not matter. One
	// that is not there is no error.
	Delete []*flow.Entry
	// Groups and Meters are added or modified by their ID.
	Groups       []*flow.Group
	Meters       []*flow.Meter
	DeleteGroups []uint32
	DeleteMeters []uint32
}

// BundleOf is the bundle that loads a whole program in place of what is there.
func BundleOf(p *flow.Program) *Bundle {
	return &Bundle{Replace: true, Names: p.Names, First: p.First, Add: p.Entries, Groups: p.Groups, Meters: p.Meters}
}

// build makes the next program out of this one and a bundle, whose entries
// c compiles. What the bundle does not touch is shared and not looked at
// again, so a small change of a large program is cheap.
func (p *program) build(b *Bundle, c *compiler, now int64) (*program, error) {
	n := &program{names: p.names, first: p.first, labels: p.labels || b.labels(), generation: p.generation + 1}
	if b.Names != nil {
		n.names, n.first = b.Names, b.First
	}
	n.groups = merge(p.groups, b.Groups, b.DeleteGroups, b.Replace, newGroup, func(g *flow.Group) uint32 { return g.ID })
	n.meters = merge(p.meters, b.Meters, b.DeleteMeters, b.Replace, newMeter, func(m *flow.Meter) uint32 { return m.ID })
	p.buildTables(n, b, c, now)
	return n, n.validate(b)
}

// merge is the groups or meters after a bundle. make gets the old one, nil when
// there was none, to keep its counters.
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
		n.set(id(s), make_(s, old.get(id(s))))
	}
	return n.made
}

// buildTables fills n's tables: unchanged ones are shared with p.
func (p *program) buildTables(n *program, b *Bundle, c *compiler, now int64) {
	edited := make(map[uint8]*table)
	edit := func(id uint8) *table {
		if edited[id] == nil {
			edited[id] = p.tables[id].editable(!b.Replace)
		}
		return edited[id]
	}
	for id, t := range p.tables {
		if b.Replace && t != nil {
			edit(uint8(id))
		}
	}
	for _, e := range b.Delete {
		if old := p.installed(e); old != nil && !b.Replace {
			edit(e.Table).remove(old)
		}
	}
	for to, n := range b.masks() {
		edit(to.table).classifier.expect(&to.mask, n)
	}
	for ne := range c.entries(b.Add, now) {
		if old := p.installed(ne.Entry); old != nil {
			ne.inherit(old)
		}
		edit(ne.Table).add(ne)
	}
	n.tables = p.tables
	for id, t := range edited {
		t.classifier.sort()
		n.tables[id] = t
	}
	n.declareTables(b)
}

// tableMask is a mask in a table.
type tableMask struct {
	table uint8
	mask  flow.Key
}

// masks counts the entries that a bundle adds by their masks.
func (b *Bundle) masks() map[tableMask]int {
	all := map[tableMask]int{}
	for _, e := range b.Add {
		all[tableMask{e.Table, e.Match.Mask}]++
	}
	return all
}

// installed finds the static entry with the identity of e.
func (p *program) installed(e *flow.Entry) *entry {
	if t := p.tables[e.Table]; t != nil {
		return t.classifier.installed(&e.Match, e.Priority)
	}
	return nil
}

// declareTables makes an empty table of every table that has a name or that
// an action of the bundle continues in or learns into, so that lookups,
// counters and learned entries have a place.
func (p *program) declareTables(b *Bundle) {
	if b.Names != nil || p.generation == 1 {
		p.nameTables()
	}
	b.forEachAction(func(a flow.Action) {
		if id, ok := tableOf(a); ok && p.tables[id] == nil {
			p.tables[id] = (*table)(nil).editable(false)
		}
		if l, ok := a.(*flow.Learn); ok {
			p.learner = !p.tables[l.Table].live.mayLearn.Swap(true) || p.learner
		}
	})
}

// nameTables makes an empty table of the first one and every one with a name.
func (p *program) nameTables() {
	for id := range p.tables {
		if p.tables[id] == nil && (p.names.Table(uint8(id)) != "" || uint8(id) == p.first) {
			p.tables[id] = (*table)(nil).editable(false)
		}
	}
}

// forEachAction visits all actions that a bundle brings.
func (b *Bundle) forEachAction(visit func(flow.Action)) {
	for _, e := range b.Add {
		forEachAction(e.Actions, visit)
	}
	for _, g := range b.Groups {
		for _, bucket := range g.Buckets {
			forEachAction(bucket.Actions, visit)
		}
	}
}

// tableOf is the table that an action continues in or learns into.
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
