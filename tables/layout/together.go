package layout

import (
	"fmt"
	"math"

	"github.com/antrail/antrail/flow"
)

// Several programs in one switch. The first begins at its own first table. Each further one has
// its tables behind those before it. An entry of the first table sends it the packets of its own
// ports. So a packet meets the tables of one program only.
//
// Registers belong to a packet, and so to one program. All programs can find a connection, so no
// two may use the same zone. A table's name tells the program of an entry, so no two may use the
// same name.

// Part is a program for the ports of a Node that belong to it.
type Part struct {
	*Program
	Node *Node
}

// Together puts programs into one switch. It returns the reason of each entry, by the part. The
// error names what two of them cannot share.
func Together(parts ...Part) (*flow.Program, []map[*flow.Entry]Origin, error) {
	first := &parts[0]
	all, of, err := first.Flow(first.Node)
	zones := map[uint16]string{}
	if err == nil {
		err = claimZones(zones, first.Name, all)
	}
	if err != nil {
		return nil, nil, err
	}
	origins, err := addBehind(all, zones, firstFree(all.Names), parts[1:])
	return all, append([]map[*flow.Entry]Origin{of}, origins...), err
}

// Behind puts programs beside a pipeline that has a first table. It returns the reason of each
// entry, by the part. Their tables get numbers from base on, and names gets their names. The
// error names what two of them cannot share.
func Behind(first uint8, names *flow.Names, base int, parts ...Part) ([]*flow.Entry, []map[*flow.Entry]Origin, error) {
	all := &flow.Program{First: first, Names: names}
	origins, err := addBehind(all, map[uint16]string{}, base, parts)
	return all.Entries, origins, err
}

// addBehind adds programs to all, with their tables from base on.
func addBehind(all *flow.Program, zones map[uint16]string, base int, parts []Part) (origins []map[*flow.Entry]Origin, err error) {
	for i := range parts {
		p := &parts[i]
		one, of, err := p.Flow(p.Node)
		if err == nil {
			err = claimZones(zones, p.Name, one)
		}
		if err == nil {
			err = putBehind(all, one, of, p, base)
		}
		if err != nil {
			return nil, err
		}
		origins, base = append(origins, of), base+firstFree(one.Names)
	}
	return origins, nil
}

// firstFree is the number after those of all tables.
func firstFree(names *flow.Names) (free int) {
	for id := range names.Tables() {
		free = max(free, int(id)+1)
	}
	return free
}

// claimZones records which program uses which zone.
func claimZones(zones map[uint16]string, name string, p *flow.Program) error {
	for _, e := range p.Entries {
		for _, a := range e.Actions {
			ct, ok := a.(*flow.CT)
			if !ok {
				continue
			}
			if other := zones[ct.Zone]; other != "" && other != name {
				return fmt.Errorf("programs %s and %s both have connections in zone %d, and cannot be in one switch", other, name, ct.Zone)
			}
			zones[ct.Zone] = name
		}
	}
	return nil
}

// putBehind adds a program to all, with its tables from base on.
func putBehind(all, one *flow.Program, origins map[*flow.Entry]Origin, p *Part, base int) error {
	for id, name := range one.Names.Tables() {
		if _, taken := all.Names.TableID(name); taken {
			return fmt.Errorf("program %s: another program of the switch has a table %s", p.Name, name)
		}
		if at := base + int(id); at >= flow.NoTable {
			return fmt.Errorf("program %s: table %s would have number %d", p.Name, name, at)
		}
		all.Names.SetTable(id+uint8(base), name)
	}
	for _, port := range p.Node.Ports() {
		all.Names.SetPort(port.No, port.Name)
		e := NewEntry(all.First, math.MaxUint16, Match(InPort(port)), flow.GotoTable{Table: one.First + uint8(base)})
		origins[e] = Origin{Why: "what comes by " + port.Name + " is of program " + p.Name}
		all.Entries = append(all.Entries, e)
	}
	for _, e := range one.Entries {
		actions, err := shifted(e.Actions, uint8(base))
		if err != nil {
			return fmt.Errorf("program %s: %w", p.Name, err)
		}
		e.Table, e.Actions = e.Table+uint8(base), actions
	}
	all.Entries = append(all.Entries, one.Entries...)
	return nil
}

// shifted are actions that name tables with numbers higher by base.
func shifted(actions []flow.Action, base uint8) (all []flow.Action, err error) {
	for _, a := range actions {
		switch a := a.(type) {
		case flow.GotoTable:
			all = append(all, flow.GotoTable{Table: a.Table + base})
		case *flow.CT:
			ct := *a
			if ct.Table != flow.NoTable {
				ct.Table += base
			}
			all = append(all, &ct)
		case flow.Resubmit, *flow.Learn, flow.Clone, flow.GroupAction, flow.MeterAction:
			return nil, fmt.Errorf("an entry has the action %T: only the first program of a switch can have it", a)
		default:
			all = append(all, a)
		}
	}
	return all, nil
}
