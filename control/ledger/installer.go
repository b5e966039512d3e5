package ledger

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// Installer is the switch as control sees it.
type Installer interface {
	// Apply changes the pipeline, whole or not at all. The error says which
	// entry is wrong, or why the switch could not.
	Apply(*Bundle) error
	// Purge removes tracked connections.
	Purge([]Purge)
}

// Purge names tracked connections to remove: all of an address, or those of a path if Addr
// is not valid.
type Purge struct {
	Addr netip.Addr
	Path Path
}

// Bundle is a change of a switch that happens whole or not at all. Nobody writes its entries,
// groups and meters afterwards.
type Bundle struct {
	// Names, if not nil, has the pipeline's new names of tables and ports. First is then
	// the table that packets enter at.
	Names *flow.Names
	First uint8
	// Add installs entries. An entry with the identity of an installed one replaces it and
	// keeps its counters.
	Add []*flow.Entry
	// Delete removes entries.
	Delete []*flow.Entry
	// Groups and Meters are new, or replace those with their ID.
	Groups       []*flow.Group
	Meters       []*flow.Meter
	DeleteGroups []uint32
	DeleteMeters []uint32
}

// Empty reports whether the bundle changes nothing.
func (b *Bundle) Empty() bool {
	return b.Names == nil && len(b.Add)+len(b.Delete)+len(b.Groups)+len(b.Meters)+
		len(b.DeleteGroups)+len(b.DeleteMeters) == 0
}
