package answer

import (
	"io"
	"sync"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/programs"
)

// mapLooks keeps the map of one generation of the pipeline. The next request for the map
// then reads only counters.
type mapLooks struct {
	mu       sync.Mutex
	sketch   *diagram.Sketch
	counters door.ClassCounters
	counts   []diagram.Count
}

// pipelineMap is the pipeline as it runs now, drawn from its entries, with what
// they and the tables have counted.
func (p *Answers) pipelineMap() *diagram.Map {
	m := p.looks.now(p)
	for _, t := range p.Switch.Tables() {
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
func (l *mapLooks) now(p *Answers) *diagram.Map {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := p.BeginAsking()
	for {
		if l.counters != nil {
			if counters, ok := l.counters.Sum(); ok {
				return l.draw(counters)
			}
		}
		l.lookAtEntries(p.Switch)
		if failed() != nil {
			l.counters = nil // another look begins again
			return l.draw(nil)
		}
	}
}

// lookAtEntries looks at the entries, and at the groups of the same generation, which say
// where some of them lead.
func (l *mapLooks) lookAtEntries(sw door.Switch) {
	for {
		before := sw.Generation()
		program := &flow.Program{Names: sw.Names(), First: sw.First()}
		for _, g := range sw.Groups() {
			program.Groups = append(program.Groups, g.Group)
		}
		l.sketch = diagram.NewSketch(program, programs.Stage(program.Names))
		if l.counters = sw.ClassCounters(l.sketch.Class); l.counters.Generation() == before {
			return
		}
	}
}

func (l *mapLooks) draw(counters []dataplane.ClassSum) *diagram.Map {
	l.counts = l.counts[:0]
	for _, s := range counters {
		l.counts = append(l.counts, diagram.Count(s))
	}
	return l.sketch.Map(l.counts)
}

func (p *Answers) writeMap(w io.Writer, _ query) error {
	m := p.pipelineMap()
	return m.Text(w, m.Total())
}
