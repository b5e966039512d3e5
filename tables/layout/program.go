package layout

import (
	"fmt"
	"maps"
	"slices"

	"github.com/antrail/antrail/flow"
)

// Program is a named set of tables, entries and meanings of bits. Programs may give the same bits
// different meanings, so an entry of one cannot be used in another.
type Program struct {
	Name string
	// Sentence describes the program in lists.
	Sentence string
	// Tables are in the order in which packets pass them.
	Tables []Table
	Marks  *Marks
	// Build makes the entries for a Node. It is nil if they come from a cluster's objects. The
	// error names everything that the Node lacks.
	Build func(*Node) ([]Entry, error)
	// HasPolicies is set if the program enforces Node.Policies.
	HasPolicies bool
	// Sample is the Node of dumps, traces and pages without a Node of their own.
	Sample func() *Node
}

// Table is a table of a program. Number is its place in the switch, or 0 in programs that hand
// out numbers.
type Table struct {
	Name, Stage string
	Number      uint8
}

// Entry is a flow entry with its reason.
type Entry struct {
	*flow.Entry
	Origin
}

// Origin is the reason of an entry. Row is a statement of the document that the program is made
// from. Literal is set if the document has the entry itself, and not only in words.
type Origin struct {
	Row, Why string
	Literal  bool
}

// Flow is the program for a Node, as a switch runs it, with the reason of each entry.
func (p *Program) Flow(n *Node) (*flow.Program, map[*flow.Entry]Origin, error) {
	if p.Build == nil {
		return nil, nil, fmt.Errorf("program %s: its entries come from the objects of a cluster", p.Name)
	}
	entries, err := p.Build(n)
	if err != nil {
		return nil, nil, fmt.Errorf("program %s: %w", p.Name, err)
	}
	out, origins := &flow.Program{Names: p.names(n), First: p.Tables[0].Number}, map[*flow.Entry]Origin{}
	for _, e := range entries {
		out.Entries = append(out.Entries, e.Entry)
		origins[e.Entry] = e.Origin
	}
	return out, origins, nil
}

// names are the names of the tables and of the Node's ports.
func (p *Program) names(n *Node) *flow.Names {
	names := flow.NewNames()
	for _, t := range p.Tables {
		names.SetTable(t.Number, t.Name)
	}
	for _, port := range n.Ports() {
		names.SetPort(port.No, port.Name)
	}
	return names
}

// Stage names the stage of a table, or "" if the program has no table of that name.
func (p *Program) Stage(table string) string {
	i := slices.IndexFunc(p.Tables, func(t Table) bool { return t.Name == table })
	if i < 0 {
		return ""
	}
	return p.Tables[i].Stage
}

// Of is the program that has most of the named tables. Of two with as many it is the first, and
// nil if none has any.
func Of(all []*Program, names *flow.Names) (best *Program) {
	most := 0
	tables := maps.Collect(names.Tables())
	for _, p := range all {
		n := 0
		for _, name := range tables {
			if p.Stage(name) != "" {
				n++
			}
		}
		if n > most {
			best, most = p, n
		}
	}
	return best
}

// AllOf are the programs of a switch by its tables: that of Of, and all others whose tables are
// all there.
func AllOf(all []*Program, names *flow.Names) (some []*Program) {
	first := Of(all, names)
	if first == nil {
		return nil
	}
	lacks := func(p *Program) bool {
		return slices.ContainsFunc(p.Tables, func(t Table) bool { _, there := names.TableID(t.Name); return !there })
	}
	others := slices.DeleteFunc(slices.Clone(all), func(p *Program) bool { return p == first || lacks(p) })
	return append([]*Program{first}, others...)
}

// NewEntry makes a flow entry. Without actions it drops.
func NewEntry(table uint8, priority uint16, m flow.Match, actions ...flow.Action) *flow.Entry {
	return &flow.Entry{Table: table, Priority: priority, Match: m.Mini(), Actions: actions}
}
