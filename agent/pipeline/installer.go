package pipeline

import (
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/door"
)

// Installer is the switch as control installs into it.
type Installer struct{ *Pipeline }

// Apply implements control.Installer.
func (i Installer) Apply(b *ledger.Bundle) error {
	return i.Switch.Apply(&program.Bundle{
		Names: b.Names, First: b.First, Add: b.Add, Delete: b.Delete,
		Groups: b.Groups, Meters: b.Meters, DeleteGroups: b.DeleteGroups, DeleteMeters: b.DeleteMeters,
	})
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
