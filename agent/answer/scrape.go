package answer

import (
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/prometheus/client_golang/prometheus"
)

// Registry has the metrics of a pipeline.
func Registry(p *Answers) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{p})
	if p.API != nil {
		r.MustRegister(watchCollector{p.API})
	}
	if p.Delays != nil {
		r.MustRegister(p.Delays)
	}
	return r
}

// Objects by state.
var objectStates = describe("objects", "Objects that concern this Node, by kind and state (installed, pending, refused).", "kind", "state")

var objectEdits = describe("objects_edit_refused", "Objects that keep their earlier state because the newest one, or its file, is refused.", "kind")

// objectCounts collects objects by state, and refused edits.
func (c collector) objectCounts(ch chan<- prometheus.Metric) {
	if c.p.Objects == nil {
		return
	}
	type state struct {
		kind  cluster.Kind
		state ledger.State
	}
	n := map[state]int{}
	for _, s := range append(c.p.Objects.Statuses(), c.p.RefusedObjects(pipeline.AnyKind)...) {
		n[state{s.Object.Kind, s.State}]++
	}
	for k, count := range n {
		gauge(ch, objectStates, count, string(k.kind), string(k.state))
	}
	edits := map[cluster.Kind]int{}
	for k := range c.p.Objects.RefusedEdits() {
		edits[k.Kind]++
	}
	for kind, count := range edits {
		gauge(ch, objectEdits, count, string(kind))
	}
}
