package program

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/flow"
)

// InvalidEntryError names an invalid flow entry or group, for which a bundle is refused.
type InvalidEntryError struct {
	Text   string // the entry or group in dump syntax
	Reason string
}

func (e *InvalidEntryError) Error() string {
	return fmt.Sprintf("%s: %s", strings.TrimSpace(e.Text), e.Reason)
}

// maxErrors is how many entries an error names at most.
const maxErrors = 20

// validate makes the checks that need the whole program.
//
//  1. All groups, meters and tables of learn actions exist.
//  2. Every tun_metadata field stands for an option.
//  3. No ct() asks for something that conntrack lacks.
//
// It checks the bundle's own entries and groups. If the bundle removes groups or meters, or
// changes the numbers of options, it checks all of them.
func (p *Program) validate(b *flow.Bundle, before *flow.Names) error {
	var errs []error
	check := func(actions []flow.Action, text func() string) {
		if err := p.CheckActions(actions); err != nil && len(errs) < maxErrors {
			errs = append(errs, &InvalidEntryError{text(), err.Error()})
		}
	}
	entry := func(e *flow.Entry) {
		if err := p.checkOptions(e); err != nil && len(errs) < maxErrors {
			errs = append(errs, &InvalidEntryError{e.Text(flow.Format{Names: p.Names}), err.Error()})
		}
		check(e.Actions, func() string { return e.Text(flow.Format{Names: p.Names}) })
	}
	group := func(g *flow.Group) {
		for _, bucket := range g.Buckets {
			check(bucket.Actions, func() string { return g.Text(p.Names) })
		}
	}
	if b.Replace || len(b.DeleteGroups)+len(b.DeleteMeters) > 0 || !slices.Equal(before.TunnelOptions(), p.Names.TunnelOptions()) {
		p.forEach(entry, group)
		return errors.Join(errs...)
	}
	for _, e := range b.Add {
		entry(e)
	}
	for _, g := range b.Groups {
		group(g)
	}
	return errors.Join(errs...)
}

// forEach visits all static entries and groups.
func (p *Program) forEach(visit func(*flow.Entry), group func(*flow.Group)) {
	for _, t := range p.EachTable() {
		t.Static.All(func(e *lookup.Entry) { visit(e.Entry) })
	}
	for _, g := range p.Groups.All() {
		group(g.Group)
	}
}

// checkOptions returns an error if an entry matches on a tun_metadata field that stands for no
// option.
func (p *Program) checkOptions(e *flow.Entry) error {
	var used flow.OptionBits
	used.AddMatch(e.Match)
	return p.lacks(&used)
}

func (p *Program) lacks(used *flow.OptionBits) error {
	if i := used.Lacks(p.Names.TunnelOptions()); i >= 0 {
		return fmt.Errorf("tun_metadata%d stands for no Geneve option of %d bits; give the option a number first (ovs-ofctl add-tlv-map)", i, used[i])
	}
	return nil
}

// CheckActions returns an error if actions use something that the program lacks.
func (p *Program) CheckActions(actions []flow.Action) (err error) {
	var used flow.OptionBits
	used.AddActions(actions)
	if used != (flow.OptionBits{}) {
		err = p.lacks(&used)
	}
	forEachAction(actions, func(a flow.Action) {
		if err == nil {
			err = p.checkAction(a)
		}
	})
	return err
}

func (p *Program) checkAction(a flow.Action) error {
	switch a := a.(type) {
	case flow.GroupAction:
		if p.Groups.Get(a.ID) == nil {
			return fmt.Errorf("group %d does not exist; add it in the same bundle", a.ID)
		}
	case flow.MeterAction:
		if p.Meters.Get(a.ID) == nil {
			return fmt.Errorf("meter %d does not exist; add it in the same bundle", a.ID)
		}
	case flow.Controller:
		if a.MeterID != 0 && p.Meters.Get(a.MeterID) == nil {
			return fmt.Errorf("meter %d does not exist; add it in the same bundle", a.MeterID)
		}
	case *flow.Learn:
		if p.Tables[a.Table] == nil {
			return fmt.Errorf("table %d to learn into does not exist", a.Table)
		}
	case *flow.CT:
		if a.ALG != "" {
			return fmt.Errorf("alg=%s: application layer gateways are not supported; remove alg= (Antrea does not use it)", a.ALG)
		}
	}
	return nil
}
