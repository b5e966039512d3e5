package examples_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// readProgram reads a set as antrail does.
func readProgram(t *testing.T, set string) *flow.Program {
	t.Helper()
	source := func(kind string) parse.Source { return parse.Text(set+kind, readFile(t, set+kind)) }
	p, err := parse.Program(parse.Sources{
		Flows: source(".flows"), Groups: source(".groups"), Meters: source(".meters"), Ports: source(".ports"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// printProgram is a program's entries, groups and meters as text.
func printProgram(p *flow.Program, names *flow.Names) (flows, groups, meters string) {
	for _, e := range p.Entries {
		flows += e.Text(flow.Format{Names: names}) + "\n"
	}
	for _, g := range p.Groups {
		groups += g.Text(names) + "\n"
	}
	for _, m := range p.Meters {
		meters += m.Text() + "\n"
	}
	return flows, groups, meters
}

func TestSetsPrintAsTheyAreWritten(t *testing.T) {
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			p := readProgram(t, set)
			flows, groups, meters := printProgram(p, p.Names)
			expectSameLines(t, readFile(t, set+".flows"), flows)
			expectSameLines(t, readFile(t, set+".groups"), groups)
			expectSameLines(t, readFile(t, set+".meters"), meters)
		})
	}
}

// The seed is a plain dump: not even a blank differs.
func TestSeedPrintsByteForByte(t *testing.T) {
	p := readProgram(t, "seed/seed")
	flows, groups, _ := printProgram(p, p.Names)
	if flows != readFile(t, "seed/seed.flows") || groups != readFile(t, "seed/seed.groups") {
		t.Error("seed.flows or seed.groups prints differently from the file")
	}
}

// Every table has a table-miss, and nothing goes to a table or port that the set
// does not have: the reader numbers such names after the others.
func TestSetsAreClosed(t *testing.T) {
	for _, set := range sets {
		p := readProgram(t, set)
		if p.First != 0 {
			t.Errorf("%s: packets enter at table %d", set, p.First)
		}
		for id, name := range pipeline {
			isMiss := func(e *flow.Entry) bool {
				return int(e.Table) == id && e.Priority == 0 && e.Match.IsAny()
			}
			if p.Names.Table(uint8(id)) != name || !slices.ContainsFunc(p.Entries, isMiss) {
				t.Errorf("%s: table %d is %q, want %s with a table-miss", set, id, p.Names.Table(uint8(id)), name)
			}
		}
		if extra := p.Names.Table(uint8(len(pipeline))); extra != "" {
			t.Errorf("%s: table %s has no entries", set, extra)
		}
		if extra := p.Names.Port(32768); extra != "" {
			t.Errorf("%s: port %s is not in the ports file", set, extra)
		}
	}
}

// A dump with numbers means the same as one with names: Open vSwitch takes the one
// and prints the other.
func TestNumbersMeanTheNames(t *testing.T) {
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			flows, groups, _ := printProgram(readProgram(t, set), nil)
			if strings.Contains(flows+groups, "ServiceLB") || strings.Contains(flows, "antrea-gw0") {
				t.Error("printed without names, it has names")
			}
			n := startNode(t, set)
			n.load(t, "add-groups", groups)
			n.load(t, "add-flows", flows)
			expectSameLines(t, readFile(t, set+".flows"), n.ofctl(t, "--no-stats", "dump-flows"))
			expectSameLines(t, readFile(t, set+".groups"), n.ofctl(t, "dump-groups"))
		})
	}
}
