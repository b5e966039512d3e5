// Package programs lists all programs. It finds one by its name, or by the tables of a switch.
package programs

import (
	"fmt"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/layout"
	"github.com/antrail/antrail/tables/uplink"
	"github.com/antrail/antrail/tables/vppl3"
	"github.com/antrail/antrail/tables/windows2020"
)

// All are the programs. The first one is the default.
func All() []*layout.Program {
	return []*layout.Program{tables.Program, uplink.Program, windows2020.Program, vppl3.Program}
}

// Names are the names of the programs that need no cluster.
func Names() (all []string) {
	for _, p := range All() {
		if p.Build != nil {
			all = append(all, p.Name)
		}
	}
	return all
}

// Named is the program of a name that needs no cluster. The error lists the names.
func Named(name string) (*layout.Program, error) {
	for _, p := range All() {
		if p.Name == name && p.Build != nil {
			return p, nil
		}
		if p.Name == name {
			return nil, fmt.Errorf("program %s: its entries come from objects; give manifests or an API server", name)
		}
	}
	return nil, fmt.Errorf("there is no program %q%s; there are %s", name, flow.Suggest(name, Names()), strings.Join(Names(), ", "))
}

// MarkNames describes registers and marks with the names of the programs whose tables a switch
// has.
func MarkNames(names *flow.Names) layout.MarkNames {
	return layout.MarkNames{Names: names, Programs: layout.AllOf(All(), names)}
}

// Stage names the stages of tables, for the programs whose tables a switch has.
func Stage(names *flow.Names) func(table string) string {
	all := layout.AllOf(All(), names)
	return func(table string) string {
		for _, p := range all {
			if stage := p.Stage(table); stage != "" {
				return stage
			}
		}
		return ""
	}
}
