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

// mapLooks caches the map of one generation of the pipeline. The next request for the map then
// reads only counters.
type mapLooks struct {
	mu       sync.Mutex
	sketch   *diagram.Sketch
	counters door.ClassCounters
	counts   []diagram.Count
}

// pipelineMap is the map of the pipeline, drawn from its current entries, with the counters of
// entries and tables.
func (p *Answers) pipelineMap() *diagram.Map {
	m := p.looks.now(p)
	for _, t := range p.Switch.Tables() {
		if box := m.Table(t.ID); box != nil {
			box.Dropped = 0
			for _, n := range t.DropsByReason {
				box.Dropped += n // also drops without an entry
			}
		}
	}
	return m
}

// now is the map without drops that have no entry. It is empty if the switch does not answer.
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
			l.counters = nil // the next request reads the entries again
			return l.draw(nil)
		}
	}
}

// lookAtEntries reads the entries, and the groups of the same generation, because groups say
// where some entries lead.
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
