package program

import (
	"errors"
	"fmt"
	"strings"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/flow"
)

// InvalidEntryError names a flow entry or group for which a bundle is refused.
type InvalidEntryError struct {
	Text   string // the entry or group in dump syntax
	Reason string
}

func (e *InvalidEntryError) Error() string {
	return fmt.Sprintf("%s: %s", strings.TrimSpace(e.Text), e.Reason)
}

// maxErrors bounds the entries that one refusal names.
const maxErrors = 20

// validate checks what only the whole program can tell: groups and meters exist, and ct()
// asks for nothing that conntrack lacks. It looks at the bundle's own entries and groups, and
// at all of them if the bundle removes groups or meters.
func (p *Program) validate(b *flow.Bundle) error {
	var errs []error
	check := func(actions []flow.Action, text func() string) {
		if err := p.CheckActions(actions); err != nil && len(errs) < maxErrors {
			errs = append(errs, &InvalidEntryError{text(), err.Error()})
		}
	}
	entry := func(e *flow.Entry) {
		check(e.Actions, func() string { return e.Text(flow.Format{Names: p.Names}) })
	}
	group := func(g *flow.Group) {
		for _, bucket := range g.Buckets {
			check(bucket.Actions, func() string { return g.Text(p.Names) })
		}
	}
	if b.Replace || len(b.DeleteGroups)+len(b.DeleteMeters) > 0 {
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
	for _, t := range p.Tables {
		if t == nil {
			continue
		}
		t.Static.All(func(e *lookup.Entry) { visit(e.Entry) })
	}
	for _, g := range p.Groups.All() {
		group(g.Group)
	}
}

func (p *Program) CheckActions(actions []flow.Action) (err error) {
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
			return fmt.Errorf("alg=%s: there are no application layer gateways here (nor does Antrea use any)", a.ALG)
		}
	}
	return nil
}
