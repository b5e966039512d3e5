package flow

// Bundle is a change of a pipeline that is applied whole or not at all.
type Bundle struct {
	// Replace removes everything that the bundle does not name, except entries that packets
	// learned. Those end with a learn action that has delete_learned, or by timeouts. An entry
	// with the table, priority and match of an old one keeps its counters.
	Replace bool
	// Names and First, if Names is not nil, replace the pipeline's names of tables and ports,
	// and the table that packets enter at.
	Names *Names
	First uint8
	// Add installs entries. An entry with the identity of an installed one modifies it and keeps
	// its counters. The entries and their actions must not change afterwards. Entries with equal
	// actions should share one list.
	Add []*Entry
	// Delete removes entries by identity, with any actions, before Add installs any. An entry in
	// both starts again with counters of 0. Delete may name entries that are not installed.
	Delete []*Entry
	// Groups and Meters are added or modified by their ID.
	Groups       []*Group
	Meters       []*Meter
	DeleteGroups []uint32
	DeleteMeters []uint32
}

// BundleOf returns the bundle that replaces everything by a program.
func BundleOf(p *Program) *Bundle {
	return &Bundle{Replace: true, Names: p.Names, First: p.First, Add: p.Entries, Groups: p.Groups, Meters: p.Meters}
}

// Empty reports whether the bundle changes nothing.
func (b *Bundle) Empty() bool {
	return !b.Replace && b.Names == nil && len(b.Add)+len(b.Delete)+len(b.Groups)+len(b.Meters)+
		len(b.DeleteGroups)+len(b.DeleteMeters) == 0
}
