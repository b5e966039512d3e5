package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
)

// program is the compiled pipeline: what packets walk. It never changes; a
// bundle makes a new one, and one atomic store publishes it, so a packet sees
// the whole pipeline before a change or after it.
type program struct {
	names      *flow.Names
	first      uint8
	tables     [256]*table // nil: no such table
	groups     map[uint32]*group
	meters     map[uint32]*meter
	nats       map[*flow.NAT]*conntrack.NAT // nat() arguments in conntrack's terms
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
	// modifies it.
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

// build makes the next program out of this one and a bundle. seq numbers the
// new entries.
func (p *program) build(b *Bundle, seq *uint64, now int64) (*program, error) {
	n := &program{names: p.names, first: p.first, generation: p.generation + 1}
	if b.Names != nil {
		n.names, n.first = b.Names, b.First
	}
	n.groups = merge(p.groups, b.Groups, b.DeleteGroups, b.Replace, newGroup, func(g *flow.Group) uint32 { return g.ID })
	n.meters = merge(p.meters, b.Meters, b.DeleteMeters, b.Replace, newMeter, func(m *flow.Meter) uint32 { return m.ID })
	p.buildTables(n, b, seq, now)
	if err := n.validate(); err != nil {
		return nil, err
	}
	n.nats = make(map[*flow.NAT]*conntrack.NAT)
	n.forEachAction(func(a flow.Action) {
		if ct, ok := a.(*flow.CT); ok && ct.NAT != nil {
			n.nats[ct.NAT] = natRequest(ct.NAT)
		}
	})
	return n, nil
}

// forEachAction visits all actions of all static entries and buckets.
func (p *program) forEachAction(visit func(flow.Action)) {
	for _, t := range p.tables {
		if t == nil {
			continue
		}
		for _, e := range t.entries {
			forEachAction(e.Actions, visit)
		}
	}
	for _, g := range p.groups {
		for _, b := range g.Buckets {
			forEachAction(b.Actions, visit)
		}
	}
}

// merge is the map of groups or meters after a bundle. make gets the old one,
// nil when there was none, to keep its counters.
func merge[T, S any](old map[uint32]*T, add []*S, del []uint32, replace bool, make_ func(*S, *T) *T, id func(*S) uint32) map[uint32]*T {
	n := make(map[uint32]*T)
	if !replace {
		for k, v := range old {
			n[k] = v
		}
	}
	for _, k := range del {
		delete(n, k)
	}
	for _, s := range add {
		n[id(s)] = make_(s, old[id(s)])
	}
	return n
}

// buildTables fills n's tables: unchanged ones are shared with p, changed ones
// compiled anew.
func (p *program) buildTables(n *program, b *Bundle, seq *uint64, now int64) {
	changed := make(map[uint8]map[flow.Identity]*entry)
	open := func(id uint8) map[flow.Identity]*entry {
		if m := changed[id]; m != nil {
			return m
		}
		m := make(map[flow.Identity]*entry)
		if t := p.tables[id]; t != nil && !b.Replace {
			for _, e := range t.entries {
				m[e.Identity()] = e
			}
		}
		changed[id] = m
		return m
	}
	n.tables = p.tables
	if b.Replace {
		for id := range p.tables {
			if p.tables[id] != nil {
				open(uint8(id))
			}
		}
	}
	for _, e := range b.Delete {
		delete(open(e.Table), e.Identity())
	}
	for _, e := range b.Add {
		*seq++
		ne, id := newEntry(e, *seq, now), e.Identity()
		if old := p.installed(id); old != nil {
			ne.inherit(old)
		}
		open(e.Table)[id] = ne
	}
	for id, m := range changed {
		n.tables[id] = compile(m, p.tables[id])
	}
	n.declareTables()
}

// installed finds the static entry of an identity.
func (p *program) installed(id flow.Identity) *entry {
	t := p.tables[id.Table]
	if t == nil {
		return nil
	}
	return t.byIdentity[id]
}

// compile makes a table of entries; old is the table before, or nil.
func compile(entries map[flow.Identity]*entry, old *table) *table {
	t := &table{byIdentity: entries, entries: sorted(entries)}
	t.classifier = newClassifier(t.entries)
	t.live = new(tableState)
	if old != nil {
		t.live = old.live
	}
	return t
}

// declareTables makes an empty table of every table that has a name or that
// an action continues in or learns into, so that lookups, counters and learned
// entries have a place.
func (p *program) declareTables() {
	for id := range p.tables {
		if p.tables[id] == nil && (p.names.Table(uint8(id)) != "" || uint8(id) == p.first) {
			p.tables[id] = compile(nil, nil)
		}
	}
	p.forEachAction(func(a flow.Action) {
		if id, ok := tableOf(a); ok && p.tables[id] == nil {
			p.tables[id] = compile(nil, nil)
		}
	})
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
