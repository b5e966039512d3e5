package agent

import (
	"context"
	"io"

	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/trace"
)

// pipelineMap is the pipeline as it runs now, drawn from its entries, with what
// they and the tables have counted.
func (p *pipeline) pipelineMap() *diagram.Map {
	program := &flow.Program{Names: p.sw.Names(), First: p.sw.First()}
	packets := map[*flow.Entry]uint64{}
	for _, e := range p.sw.Flows() {
		program.Entries = append(program.Entries, e.Entry)
		packets[e.Entry] += e.Packets
	}
	for _, g := range p.sw.Groups() {
		program.Groups = append(program.Groups, g.Group)
	}
	m := diagram.Build(program, tables.Stage, func(e *flow.Entry) uint64 { return packets[e] })
	for _, t := range p.sw.Tables() {
		if box := m.Table(t.ID); box != nil {
			box.Dropped = 0
			for _, n := range t.DropsByReason {
				box.Dropped += n // those that no entry asked for too
			}
		}
	}
	return m
}

func (p *pipeline) writeMap(w io.Writer, _ query) error {
	m := p.pipelineMap()
	return m.Text(w, m.Total())
}

// Map asks for the pipeline as a map, with what was counted until now.
func (c *Client) Map(ctx context.Context) (*diagram.Map, error) {
	var m diagram.Map
	return &m, c.JSON(ctx, "/pipeline", nil, &m)
}

// HopsOf is a walk as turns of tables, to be shown on the map, and whether it
// ended in a drop.
func HopsOf(w *trace.Walk) (hops []diagram.Hop, dropped bool) {
	from := -1 // the table whose action came last
	for i := range w.Steps {
		s := &w.Steps[i]
		if s.Kind == trace.StepEntry {
			if from < 0 {
				from = int(s.TableID)
			}
			hops = append(hops, diagram.Hop{From: uint8(from), To: s.TableID})
		}
		from = int(s.TableID)
	}
	return hops, w.Verdict.Reason != ""
}
