package pipeline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/programs"
)

// Program is a program (tables/programs) as a source of entries.
type Program struct {
	Name string
	Node *layout.Node // the program's sample if nil
	// Beside are more programs of the switch, each with its own ports.
	Beside []Program
}

// ProgramOf is the program of a configuration, with the programs beside it.
func ProgramOf(c *config.Config) Program {
	return Program{Name: c.Program, Node: c.ProgramNode(), Beside: BesideOf(c)}
}

// BesideOf are the programs that ports of a configuration name.
func BesideOf(c *config.Config) (all []Program) {
	for _, b := range c.ProgramsBeside() {
		all = append(all, Program{Name: b.Name, Node: b.Node})
	}
	return all
}

// String lists the programs' names.
func (s Program) String() string {
	if len(s.Beside) == 0 {
		return "program " + s.Name
	}
	all := []string{s.Name}
	for _, b := range s.Beside {
		all = append(all, b.Name)
	}
	return "programs " + strings.Join(all, " and ")
}

// parts are the programs with their Nodes.
func (s Program) parts() ([]layout.Part, error) { return partsOf(append([]Program{s}, s.Beside...)) }

func partsOf(those []Program) (all []layout.Part, err error) {
	for _, one := range those {
		p, err := programs.Named(one.Name)
		if err != nil {
			return nil, err
		}
		if one.Node == nil {
			one.Node = p.Sample()
		}
		all = append(all, layout.Part{Program: p, Node: one.Node})
	}
	return all, nil
}

// Load makes a switch without ports that runs the program's entries. Floods leave out the ports
// of the Node's own network.
func (s Program) Load(o Options) (*Pipeline, error) {
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	prog, rows, err := buildParts(parts)
	if err != nil {
		return nil, err
	}
	p, err := loadProgram(s, prog, o)
	if err != nil {
		return nil, err
	}
	p.rows.Store(&rows)
	p.Made = map[string]control.Made{}
	for _, one := range parts {
		p.Made[one.Node.Uplink.Name], p.Made[one.Node.Bridge.Name] = control.Made{}, control.Made{}
	}
	return p, nil
}

// Reload replaces the entries by those of a program. An entry that is in both keeps its
// counters. After an error nothing has changed.
func (p *Pipeline) Reload(s Program) error {
	parts, err := s.parts()
	if err != nil {
		return err
	}
	prog, rows, err := buildParts(parts)
	if err == nil {
		err = p.Switch.Apply(flow.BundleOf(prog))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	p.rows.Store(&rows)
	return nil
}

// programRows are the origins of entries.
type programRows map[entryKey]api.OriginText

// buildParts makes the entries of all parts, with their origins.
func buildParts(parts []layout.Part) (*flow.Program, programRows, error) {
	prog, origins, err := layout.Together(parts...)
	if err != nil {
		return nil, nil, err
	}
	return prog, rowsOf(parts, origins), nil
}

func rowsOf(parts []layout.Part, origins []map[*flow.Entry]layout.Origin) programRows {
	rows := programRows{}
	for i, of := range origins {
		for e, origin := range of {
			rows[keyOf(e)] = rowText(parts[i].Name, origin)
		}
	}
	return rows
}

// PortAddresses are the MAC addresses of the Node's ports. An address that two pods share is
// left out.
func (s Program) PortAddresses() (map[[6]byte]uint32, error) {
	parts, err := s.parts()
	if err != nil {
		return nil, err
	}
	all, shared := map[[6]byte]uint32{}, map[[6]byte]bool{}
	for _, part := range parts {
		for _, p := range part.Node.Ports() {
			if _, taken := all[p.MAC]; taken {
				shared[p.MAC] = true
			}
			all[p.MAC] = p.No
		}
	}
	for mac := range shared {
		delete(all, mac)
	}
	delete(all, [6]byte{})
	return all, nil
}

// entryKey identifies an entry.
type entryKey struct {
	table    uint8
	priority uint16
	match    string
}

func keyOf(e *flow.Entry) entryKey { return entryKey{e.Table, e.Priority, e.Match.Text(nil)} }

// rowText is the origin of an entry.
func rowText(program string, o layout.Origin) api.OriginText {
	why := o.Why
	if o.Literal {
		why += "; the document's own entry"
	}
	return api.OriginText{Object: "program " + program, Field: o.Row, Rule: why}
}

// HasOrigins says whether the origins of entries are known.
func (p *Pipeline) HasOrigins() bool { return p.Objects != nil || p.rows.Load() != nil || p.byCookie() }

// OriginsOf are the origins of an entry: objects, a statement of a program's document, or the
// cookie of a foreign controller. It is never nil.
func (p *Pipeline) OriginsOf(e *flow.Entry) []api.OriginText {
	if row, is := p.besideRow(e); is {
		return []api.OriginText{row}
	}
	if p.Objects != nil {
		return OriginTexts(p.Objects.OriginsOf(e)...)
	}
	if rows := p.rows.Load(); rows != nil {
		if row, ok := (*rows)[keyOf(e)]; ok {
			return []api.OriginText{row}
		}
	}
	if p.byCookie() {
		return cookieOrigin(e)
	}
	return []api.OriginText{}
}

// errNoSuchEntry is the error of a line that the program does not have.
var errNoSuchEntry = errors.New("the program has no entry with this table, priority and match")

// explainRow explains a line of a program's dump.
func (p *Pipeline) explainRow(line string) ([]api.Explained, error) {
	names := p.Switch.Names()
	match, _, _ := strings.Cut(line, "actions=")
	entry, err := parse.Entry(match+" actions=drop", names)
	if err != nil {
		return nil, err
	}
	row, ok := (*p.rows.Load())[keyOf(entry)]
	if !ok {
		return nil, errNoSuchEntry
	}
	return []api.Explained{{Entry: strings.TrimSpace(match), Origins: []api.OriginText{row}}}, nil
}
