package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// The sample cluster, and the Node whose entries the pages show.
const (
	objects  = "examples/web-app"
	bookNode = "node-a"
)

var nodes = []string{"node-a", "node-b"}

// cluster is the switches of both Nodes, with their tables.
type cluster struct {
	rehearsal *answer.Rehearsal
	variants  []*answer.Rehearsal
	sources   map[string]*tableSource
	tables    []*table
	pipes     map[string]*pipe // by Node
	usage     usage
	known     known
}

// pipe is a Node's pipeline.
type pipe struct {
	program *flow.Program
	chart   *diagram.Map
	client  *api.Client
	groups  map[uint32]*flow.Group
}

// names are the names of its tables and ports; without a pipeline there are none.
func (p *pipe) names() *flow.Names {
	if p == nil {
		return nil
	}
	return p.program.Names
}

// table is a table of the book, in the pipeline that its page shows.
type table struct {
	*tableSource
	pipe    *pipe
	variant *variant // nil: the table of bookNode
	number  uint8
	entries []*flow.Entry
}

func newCluster(top string, sources []*tableSource) (*cluster, error) {
	r, err := answer.Rehearse(filepath.Join(top, objects), nodes...)
	if err != nil {
		return nil, err
	}
	for from, to := range wires {
		r.Wire(from, to)
	}
	c := &cluster{rehearsal: r, sources: map[string]*tableSource{}, pipes: map[string]*pipe{}}
	if err := c.readTables(top, sources); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// readTables reads the tables of all switches.
func (c *cluster) readTables(top string, sources []*tableSource) (err error) {
	for _, node := range nodes {
		if c.pipes[node], err = newPipe(c.rehearsal.Client(node)); err != nil {
			return fmt.Errorf("%s: %w", node, err)
		}
	}
	for _, s := range sources {
		c.sources[s.name] = s
		t, err := c.newTable(top, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		c.tables = append(c.tables, t)
	}
	c.usage = newUsage(c)
	c.known, err = newKnown(top)
	return err
}

func (c *cluster) close() error {
	errs := []error{c.rehearsal.Close()}
	for _, r := range c.variants {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

func (c *cluster) newTable(top string, s *tableSource) (t *table, err error) {
	t = &table{tableSource: s, pipe: c.pipes[bookNode]}
	if i := slices.IndexFunc(variants, func(v variant) bool { return v.table == s.name }); i >= 0 {
		t.variant = &variants[i]
		if t.pipe, err = c.variantPipe(top, t.variant); err != nil {
			return nil, err
		}
	}
	var ok bool
	if t.number, ok = t.pipe.program.Names.TableID(s.name); !ok {
		return nil, errors.New("no pipeline of the book has this table")
	}
	for _, e := range t.pipe.program.Entries {
		if e.Table == t.number {
			t.entries = append(t.entries, e)
		}
	}
	return t, nil
}

func (c *cluster) variantPipe(top string, v *variant) (*pipe, error) {
	r, err := v.rehearse(top)
	if err != nil {
		return nil, err
	}
	c.variants = append(c.variants, r)
	return newPipe(r.Client(bookNode))
}

// newPipe reads a switch's pipeline, in the text of its dumps.
func newPipe(client *api.Client) (*pipe, error) {
	ctx := context.Background()
	p := &pipe{client: client, groups: map[uint32]*flow.Group{}}
	var ports []api.PortRecord
	if err := client.JSON(ctx, "/ports", nil, &ports); err != nil {
		return nil, err
	}
	names := flow.NewNames()
	for _, port := range ports {
		names.SetPort(port.No, port.Name)
	}
	q := url.Values{"names": {"1"}, "stats": {"0"}}
	flows, err := client.Get(ctx, "/flows", q)
	if err != nil {
		return nil, err
	}
	groups, err := client.Get(ctx, "/groups", q)
	if err != nil {
		return nil, err
	}
	src := parse.Sources{Names: names, Flows: parse.Text("flows", string(flows)), Groups: parse.Text("groups", string(groups))}
	if p.program, err = parse.Program(src); err != nil {
		return nil, err
	}
	for _, g := range p.program.Groups {
		p.groups[g.ID] = g
	}
	p.chart, err = client.Map(ctx)
	return p, err
}

// origins are the objects that made an entry, or a group given by its line.
func (p *pipe) origins(line string) ([]api.OriginText, error) {
	var all []api.Explained
	if err := p.client.JSON(context.Background(), "/explain", url.Values{"what": {line}}, &all); err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%s: explained as %d", line, len(all))
	}
	return all[0].Origins, nil
}
