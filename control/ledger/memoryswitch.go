package ledger

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/antrail/antrail/flow"
)

// MemorySwitch is an Installer that only remembers entries, groups and meters. It replaces
// the switch offline and in tests.
type MemorySwitch struct {
	names   *flow.Names
	first   uint8
	entries map[flow.Identity]*flow.Entry
	groups  map[uint32]*flow.Group
	meters  map[uint32]*flow.Meter
}

// NewMemorySwitch returns an empty MemorySwitch.
func NewMemorySwitch() *MemorySwitch {
	return &MemorySwitch{
		entries: map[flow.Identity]*flow.Entry{}, groups: map[uint32]*flow.Group{}, meters: map[uint32]*flow.Meter{},
	}
}

// Apply remembers a bundle. Like a switch, it refuses an entry that names a missing group.
func (m *MemorySwitch) Apply(b *flow.Bundle) error {
	if err := m.dangling(b); err != nil {
		return err
	}
	if b.Names != nil {
		m.names, m.first = b.Names, b.First
	}
	for _, e := range b.Delete {
		delete(m.entries, e.Identity())
	}
	for _, e := range b.Add {
		m.entries[e.Identity()] = e
	}
	for _, id := range b.DeleteGroups {
		delete(m.groups, id)
	}
	for _, g := range b.Groups {
		m.groups[g.ID] = g
	}
	for _, id := range b.DeleteMeters {
		delete(m.meters, id)
	}
	for _, x := range b.Meters {
		m.meters[x.ID] = x
	}
	return nil
}

// dangling refuses a new entry whose group does not exist.
func (m *MemorySwitch) dangling(b *flow.Bundle) error {
	for _, e := range b.Add {
		for _, a := range e.Actions {
			g, ok := a.(flow.GroupAction)
			if !ok || slices.ContainsFunc(b.Groups, func(x *flow.Group) bool { return x.ID == g.ID }) {
				continue
			}
			if m.groups[g.ID] == nil || slices.Contains(b.DeleteGroups, g.ID) {
				return errors.New("the group does not exist:" + e.Text(flow.Format{Names: m.names}))
			}
		}
	}
	return nil
}

// Purge does nothing: there are no connections.
func (m *MemorySwitch) Purge([]Purge) {}

// Program returns the switch's contents: entries by table, falling priority and match; groups
// and meters by number.
func (m *MemorySwitch) Program() *flow.Program {
	p := &flow.Program{Names: m.names, First: m.first}
	p.Entries = slices.SortedFunc(maps.Values(m.entries), func(a, b *flow.Entry) int {
		if a.Table != b.Table || a.Priority != b.Priority {
			return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Priority, a.Priority))
		}
		return cmp.Compare(a.Match.Text(m.names), b.Match.Text(m.names))
	})
	p.Groups = slices.SortedFunc(maps.Values(m.groups), func(a, b *flow.Group) int { return cmp.Compare(a.ID, b.ID) })
	p.Meters = slices.SortedFunc(maps.Values(m.meters), func(a, b *flow.Meter) int { return cmp.Compare(a.ID, b.ID) })
	return p
}
