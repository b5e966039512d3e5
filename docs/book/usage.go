package main

import (
	"slices"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/layout"
)

// usage has the tables that read and write each named field, by the entries of both Nodes and of
// variants. Names are in the order of the pipeline.
type usage map[string]*uses

type uses struct{ reads, writes []string }

func newUsage(c *cluster) usage {
	u := usage{}
	for _, f := range tables.Fields() {
		u[f.Name] = &uses{}
	}
	for _, t := range c.tables {
		for _, p := range c.pipesWith(t) {
			for _, e := range p.program.Entries {
				if p.program.Names.Table(e.Table) == t.name {
					u.entry(c, t, p, e)
				}
			}
		}
	}
	order := func(a, b string) int {
		return slices.Index(tables.TableNames(), a) - slices.Index(tables.TableNames(), b)
	}
	for _, x := range u {
		slices.SortFunc(x.reads, order)
		slices.SortFunc(x.writes, order)
	}
	return u
}

// pipesWith are the pipelines that have a table.
func (c *cluster) pipesWith(t *table) (all []*pipe) {
	if t.variant != nil {
		return []*pipe{t.pipe}
	}
	for _, node := range nodes {
		all = append(all, c.pipes[node])
	}
	return all
}

func (u usage) entry(c *cluster, t *table, p *pipe, e *flow.Entry) {
	x := effect{reads: examinedBits(e.Match)}
	x.actions(p, e.Actions)
	for _, b := range x.reads {
		for _, n := range namesOf(b, t.tableSource) {
			u[n.Name].reads = added(u[n.Name].reads, t.name)
		}
	}
	for _, b := range x.writes {
		for _, n := range namesOf(b, t.tableSource) {
			u[n.Name].writes = added(u[n.Name].writes, t.name)
		}
	}
	u.learned(c, p, e)
}

// learned records the effects of learned entries, in the table of the learn action.
func (u usage) learned(c *cluster, p *pipe, e *flow.Entry) {
	for _, a := range e.Actions {
		l, ok := a.(*flow.Learn)
		if !ok {
			continue
		}
		table := p.program.Names.Table(l.Table)
		for _, s := range l.Specs {
			if s.Kind != flow.LearnLoad {
				continue
			}
			for _, n := range namesOf(layout.Bits{Field: s.Dst.Field, Mask: s.Dst.Mask()}, c.sources[table]) {
				u[n.Name].writes = added(u[n.Name].writes, table)
			}
		}
	}
}

func added(all []string, s string) []string {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// of are the fields that a table reads or writes, in the order of tables.Fields.
func (u usage) of(table string, side func(*uses) []string) (all []tables.Field) {
	for _, f := range tables.Fields() {
		if slices.Contains(side(u[f.Name]), table) {
			all = append(all, f)
		}
	}
	return all
}

// others are the other tables on a side of a field, or of one that shares bits with it. They are
// in the order of the pipeline.
func (u usage) others(f tables.Field, not string, side func(*uses) []string) (all []string) {
	for _, t := range tables.TableNames() {
		for _, g := range tables.Fields() {
			if t != not && overlap(f, g) && slices.Contains(side(u[g.Name]), t) {
				all = added(all, t)
			}
		}
	}
	return all
}

func reads(u *uses) []string  { return u.reads }
func writes(u *uses) []string { return u.writes }
