package dataplane

import (
	"errors"
	"fmt"
	"strings"

	"github.com/antrail/antrail/flow"
)

// InvalidEntryError says which flow entry or group a bundle was refused for.
type InvalidEntryError struct {
	Text   string // the entry or group in dump syntax
	Reason string
}

func (e *InvalidEntryError) Error() string {
	return fmt.Sprintf("%s: %s", strings.TrimSpace(e.Text), e.Reason)
}

// maxErrors bounds how many entries one refusal names.
const maxErrors = 20

// validate checks what only the whole program can tell: that groups and meters
// exist, that a ct() asks for nothing we lack. Only what the bundle brings can
// be wrong, unless it took groups or meters away.
func (p *program) validate(b *Bundle) error {
	var errs []error
	check := func(actions []flow.Action, text func() string) {
		if err := p.checkActions(actions); err != nil && len(errs) < maxErrors {
			errs = append(errs, &InvalidEntryError{text(), err.Error()})
		}
	}
	entry := func(e *flow.Entry) {
		check(e.Actions, func() string { return e.Text(flow.Format{Names: p.names}) })
	}
	group := func(g *flow.Group) {
		for _, bucket := range g.Buckets {
			check(bucket.Actions, func() string { return g.Text(p.names) })
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
func (p *program) forEach(visit func(*flow.Entry), group func(*flow.Group)) {
	for _, t := range p.tables {
		if t == nil {
			continue
		}
		t.classifier.all(func(e *entry) { visit(e.Entry) })
	}
	for _, g := range p.groups.all() {
		group(g.Group)
	}
}

func (p *program) checkActions(actions []flow.Action) (err error) {
	forEachAction(actions, func(a flow.Action) {
		if err == nil {
			err = p.checkAction(a)
		}
	})
	return err
}

func (p *program) checkAction(a flow.Action) error {
	switch a := a.(type) {
	case flow.GroupAction:
		if p.groups.get(a.ID) == nil {
			return fmt.Errorf("group %d does not exist; add it in the same bundle", a.ID)
		}
	case flow.MeterAction:
		if p.meters.get(a.ID) == nil {
			return fmt.Errorf("meter %d does not exist; add it in the same bundle", a.ID)
		}
	case flow.Controller:
		if a.MeterID != 0 && p.meters.get(a.MeterID) == nil {
			return fmt.Errorf("meter %d does not exist; add it in the same bundle", a.MeterID)
		}
	case *flow.Learn:
		if p.tables[a.Table] == nil {
			return fmt.Errorf("table %d to learn into does not exist", a.Table)
		}
	case *flow.CT:
		if a.ALG != "" {
			return fmt.Errorf("alg=%s: there are no application layer gateways here (nor does Antrea use any)", a.ALG)
		}
	}
	return nil
}

// forEachAction visits the actions that a packet may run, and those inside
// clone: none of a soft entry.
func forEachAction(actions []flow.Action, visit func(flow.Action)) {
	if soft(actions) {
		return
	}
	for _, a := range actions {
		visit(a)
		if c, ok := a.(flow.Clone); ok {
			forEachAction(c.Actions, visit)
		}
	}
}
