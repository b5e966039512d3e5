package layout

import (
	"fmt"
	"math"

	"github.com/antrail/antrail/flow"
)

// Several programs in one switch. The first begins at its own first table. Each further one has
// its tables behind all before it, and gets what comes by its own ports: an entry of the first
// table sends it there. So a packet meets the tables of one program only.
//
// Registers are a packet's, and so of one program. A connection may be found by all programs, so no
// two may use the same zone. Names of tables say which program an entry is of, so no two may have
// the same one.

// Part is a program for the ports of a Node that are its own.
type Part struct {
	*Program
	Node *Node
}

// Together is programs in one switch, and what each entry is for, by the part. The error says
// what two of them cannot share.
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

// Behind is programs beside a pipeline that has a first table, and what each entry is for, by the part.
// Their tables have numbers from base on, and their names come to those of the pipeline. The error says what
// two of them cannot share.
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

// firstFree is the number behind those of all tables.
func firstFree(names *flow.Names) (free int) {
	for id := range names.Tables() {
		free = max(free, int(id)+1)
	}
	return free
}

// claimZones notes which program uses which zone.
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
