package agent

import (
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/door"
)

// installer is the switch as control installs into it.
type installer struct{ *pipeline }

// Apply implements control.Installer.
func (i installer) Apply(b *control.Bundle) error {
	return i.sw.Apply(&dataplane.Bundle{
		Names: b.Names, First: b.First, Add: b.Add, Delete: b.Delete,
		Groups: b.Groups, Meters: b.Meters, DeleteGroups: b.DeleteGroups, DeleteMeters: b.DeleteMeters,
	})
}

// Purge implements control.Installer.
func (i installer) Purge(all []control.Purge) {
	p := &door.Purge{}
	for _, one := range all {
		if one.Addr.IsValid() {
			p.Addrs = append(p.Addrs, one.Addr)
		} else {
			p.Paths = append(p.Paths, door.Path{Proto: uint8(one.Path.Proto), Service: one.Path.Service, Endpoint: one.Path.Endpoint})
		}
	}
	i.ct.Purge(p)
}
