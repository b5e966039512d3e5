package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/flow"
)

// The sample cluster, and the Node whose entries the pages show.
const (
	objects  = "examples/web-app"
	bookNode = "node-a"
)

var nodes = []string{"node-a", "node-b"}

// cluster is the switches of both Nodes, and what is known of their tables.
type cluster struct {
	rehearsal *agent.Rehearsal
	sources   map[string]*tableSource
	tables    []*table
	pipes     map[string]*pipe // by Node
	usage     usage
}

// pipe is a Node's pipeline.
type pipe struct {
	program *flow.Program
	chart   *diagram.Map
	client  *agent.Client
	groups  map[uint32]*flow.Group
}

// table is a table of the book. It has a number only if bookNode has it.
type table struct {
	*tableSource
	number  int // -1 for none
	entries []*flow.Entry
}

func newCluster(top string, sources []*tableSource) (*cluster, error) {
	r, err := agent.Rehearse(filepath.Join(top, objects), nodes...)
	if err != nil {
		return nil, err
	}
	c := &cluster{rehearsal: r, sources: map[string]*tableSource{}, pipes: map[string]*pipe{}}
	for _, node := range nodes {
		if c.pipes[node], err = newPipe(r.Client(node)); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", node, err), r.Close())
		}
	}
	for _, s := range sources {
		c.sources[s.name] = s
		c.tables = append(c.tables, c.newTable(s))
	}
	c.usage = newUsage(c)
	return c, nil
}

func (c *cluster) close() error { return c.rehearsal.Close() }

func (c *cluster) newTable(s *tableSource) *table {
	t := &table{tableSource: s, number: -1}
	p := c.pipes[bookNode].program
	if id, ok := p.Names.TableID(s.name); ok {
		t.number = int(id)
	}
	for _, e := range p.Entries {
		if int(e.Table) == t.number {
			t.entries = append(t.entries, e)
		}
	}
	return t
}

// newPipe asks a switch for its pipeline, in the text of its dumps.
func newPipe(client *agent.Client) (*pipe, error) {
	ctx := context.Background()
	p := &pipe{client: client, groups: map[uint32]*flow.Group{}}
	var ports []agent.PortRecord
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
	src := flow.Sources{Names: names, Flows: flow.Text("flows", string(flows)), Groups: flow.Text("groups", string(groups))}
	if p.program, err = flow.ParseProgram(src); err != nil {
		return nil, err
	}
	for _, g := range p.program.Groups {
		p.groups[g.ID] = g
	}
	p.chart, err = client.Map(ctx)
	return p, err
}

// origins are the objects that want an entry, or a group as its line begins.
func (p *pipe) origins(line string) ([]agent.OriginText, error) {
	var all []agent.Explained
	if err := p.client.JSON(context.Background(), "/explain", url.Values{"what": {line}}, &all); err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%s: explained as %d", line, len(all))
	}
	return all[0].Origins, nil
}
