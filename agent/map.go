package agent

import (
	"context"
	"io"
	"sync"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/trace"
)

// mapLooks is the map of one generation of the pipeline: what was found out about
// its entries, so that another look reads counters only.
type mapLooks struct {
	mu     sync.Mutex
	sketch *diagram.Sketch
	sums   door.ClassSums
	counts []diagram.Count
}

// pipelineMap is the pipeline as it runs now, drawn from its entries, with what
// they and the tables have counted.
func (p *pipeline) pipelineMap() *diagram.Map {
	m := p.looks.now(p)
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

// now is the map without the drops that no entry asked for. It is empty if the switch does
// not answer.
func (l *mapLooks) now(p *pipeline) *diagram.Map {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := p.beginAsking()
	for {
		if l.sums != nil {
			if sums, ok := l.sums.Sum(); ok {
				return l.draw(sums)
			}
		}
		l.begin(p.sw)
		if failed() != nil {
			l.sums = nil // another look begins again
			return l.draw(nil)
		}
	}
}

// begin looks at the entries, and at the groups of the same generation, which say
// where some of them lead.
func (l *mapLooks) begin(sw door.Switch) {
	for {
		before := sw.Generation()
		program := &flow.Program{Names: sw.Names(), First: sw.First()}
		for _, g := range sw.Groups() {
			program.Groups = append(program.Groups, g.Group)
		}
		l.sketch = diagram.NewSketch(program, tables.Stage)
		if l.sums = sw.ClassSums(l.sketch.Class); l.sums.Generation() == before {
			return
		}
	}
}

func (l *mapLooks) draw(sums []dataplane.ClassSum) *diagram.Map {
	l.counts = l.counts[:0]
	for _, s := range sums {
		l.counts = append(l.counts, diagram.Count(s))
	}
	return l.sketch.Map(l.counts)
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
