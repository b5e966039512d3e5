package pipeline

import (
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/programs"
)

// Installer is the switch as control.Installer.
type Installer struct {
	*Pipeline
	// Applied has a value after a bundle was applied, for one goroutine; it may be nil.
	Applied chan struct{}
}

// Apply implements control.Installer. It adds the programs beside the objects to a bundle that
// names tables.
func (i Installer) Apply(b *flow.Bundle) error {
	with, err := i.withBeside(b)
	if err != nil {
		return err
	}
	if err := i.Switch.Apply(with); err != nil {
		return err
	}
	select {
	case i.Applied <- struct{}{}:
	default:
	}
	return nil
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

// Programs beside the entries of objects (programs.Beside). They are added to each bundle of
// objects that names tables, as the first bundle of an agent does.

// SetBeside sets the programs that the switch runs beside the entries of objects. Call it
// before the first bundle. The error says why a program cannot run there.
func (p *Pipeline) SetBeside(all []Program) error {
	p.beside = all
	_, err := p.entriesBeside(p.Switch.First(), flow.NewNames())
	return err
}

// entriesBeside are the entries of the programs beside objects. It adds their names to names.
func (p *Pipeline) entriesBeside(first uint8, names *flow.Names) ([]*flow.Entry, error) {
	parts, err := partsOf(p.beside)
	if err != nil {
		return nil, err
	}
	entries, origins, err := programs.Beside(first, names, parts...)
	if err == nil {
		rows := rowsOf(parts, origins)
		p.rowsBeside.Store(&rows)
	}
	return entries, err
}

// withBeside is a bundle of objects with the entries of the programs beside them.
func (p *Pipeline) withBeside(b *flow.Bundle) (*flow.Bundle, error) {
	if b.Names == nil || len(p.beside) == 0 {
		return b, nil
	}
	with := *b
	with.Names = b.Names.Clone()
	entries, err := p.entriesBeside(b.First, with.Names)
	with.Add = append(entries, b.Add...)
	return &with, err
}

// IsBeside says whether an entry belongs to a program beside objects.
func (p *Pipeline) IsBeside(e *flow.Entry) bool {
	_, is := p.besideRow(e)
	return is
}

// besideRow is the origin of an entry of a program beside objects.
func (p *Pipeline) besideRow(e *flow.Entry) (row api.OriginText, is bool) {
	if rows := p.rowsBeside.Load(); rows != nil {
		row, is = (*rows)[keyOf(e)]
	}
	return row, is
}
