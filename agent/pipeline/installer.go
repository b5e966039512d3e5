package pipeline

import (
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
)

// Installer is the switch as control installs into it.
type Installer struct{ *Pipeline }

// Apply implements control.Installer. Programs beside the objects come with the names of tables.
func (i Installer) Apply(b *flow.Bundle) error {
	with, err := i.withBeside(b)
	if err != nil {
		return err
	}
	return i.Switch.Apply(with)
}

// Purge implements control.Installer.
func (i Installer) Purge(all []ledger.Purge) {
	p := &door.Purge{}
	for _, one := range all {
		if one.Addr.IsValid() {
			p.Addrs = append(p.Addrs, one.Addr)
		} else {
			p.Paths = append(p.Paths, door.Path{Proto: uint8(one.Path.Proto), Service: one.Path.Service, Endpoint: one.Path.Endpoint})
		}
	}
	i.Connections.Purge(p)
}
