package ledger

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// Installer is the switch as control sees it.
type Installer interface {
	// Apply changes the pipeline, whole or not at all. The error says which
	// entry is wrong, or why the switch could not.
	Apply(*flow.Bundle) error
	// Purge removes tracked connections.
	Purge([]Purge)
}

// Purge names tracked connections to remove: all of an address, or those of a path if Addr
// is not valid.
type Purge struct {
	Addr netip.Addr
	Path Path
}
