package answer

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// The caches of workers in dumps and metrics.

var (
	cacheEntries   = describe("cache_entries", "Walks in the workers' exact-match caches.")
	cacheRoom      = describe("cache_room", "Walks that fit into the exact-match caches before they grow.")
	cacheMegaflows = describe("cache_megaflows", "Megaflows of the workers, for first packets of connections.")
	cacheShapes    = describe("cache_shapes", "Different masks of megaflows.")
	cacheEvents    = describe("cache_events_total", "Events of the caches; dump-cache explains each.", "event")
)

// cacheValue is a line of dump-cache.
type cacheValue struct {
	api.Counter
	meaning string
}

func (p *Answers) cacheValues() []cacheValue {
	st := p.Switch.Cache()
	all := []cacheValue{
		{api.Counter{Name: "entries", Value: st.Entries}, "Walks in the exact-match caches."},
		{api.Counter{Name: "paths", Value: st.Paths}, "Different paths of these walks through the tables."},
		{api.Counter{Name: "room", Value: st.Room}, "Walks that fit before the caches grow."},
		{api.Counter{Name: "megaflows", Value: st.Megaflows}, "Megaflows, for first packets of connections."},
		{api.Counter{Name: "shapes", Value: st.Shapes}, "Different masks of megaflows."},
	}
	for i, n := range st.Events {
		e := telemetry.CacheEvent(i)
		all = append(all, cacheValue{api.Counter{Name: e.String(), Value: n}, e.Sentence()})
	}
	for _, o := range p.Switch.CacheShapes() {
		by := cmp.Or(p.Switch.Names().Table(o.Table), fmt.Sprint(o.Table)) + ": " + cmp.Or(o.Fields, "nothing")
		all = append(all, cacheValue{api.Counter{Name: "shape", Label: by, Value: o.Packets}, "Packets that a megaflow served from " + by})
	}
	return append(all, p.offloadValues()...)
}

func (p *Answers) cacheRecords() (all []api.Counter) {
	for _, v := range p.cacheValues() {
		all = append(all, v.Counter)
	}
	return all
}

func (p *Answers) writeCache(w io.Writer, _ query) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVALUE\tMEANING")
	for _, v := range p.cacheValues() {
		fmt.Fprintf(t, "%s\t%d\t%s\n", v.Name, v.Value, v.meaning)
	}
	return t.Flush()
}

// collectCache gives the counters to Prometheus.
func (p *Answers) collectCache(ch chan<- prometheus.Metric) {
	st := p.Switch.Cache()
	gauge(ch, cacheEntries, st.Entries)
	gauge(ch, cacheRoom, st.Room)
	gauge(ch, cacheMegaflows, st.Megaflows)
	gauge(ch, cacheShapes, st.Shapes)
	for i, n := range st.Events {
		counter(ch, cacheEvents, n, telemetry.CacheEvent(i).String())
	}
}
