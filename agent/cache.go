package agent

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/antrail/antrail/dataplane"
	"github.com/prometheus/client_golang/prometheus"
)

// The connection cache in dumps and metrics.

var (
	cacheEntries   = describe("cache_entries", "Walks that the workers' connection caches remember.")
	cacheRoom      = describe("cache_room", "Walks that the connection caches have room for before they grow.")
	cacheStretches = describe("cache_stretches", "Stretches of walks that the workers remember for the first packets of connections.")
	cacheShapes    = describe("cache_shapes", "Different masks by which stretches are found.")
	cacheEvents    = describe("cache_events_total", "What the connection caches did; dump-cache explains each.", "event")
)

// cacheValue is a line of dump-cache.
type cacheValue struct {
	Counter
	meaning string
}

func (p *pipeline) cacheValues() []cacheValue {
	st := p.sw.Cache()
	all := []cacheValue{
		{Counter{Name: "entries", Value: st.Entries}, "Walks remembered now."},
		{Counter{Name: "paths", Value: st.Paths}, "Different ways through the tables that they took."},
		{Counter{Name: "room", Value: st.Room}, "Walks that fit before the cache grows."},
		{Counter{Name: "stretches", Value: st.Stretches}, "Stretches of walks remembered, for the first packets of connections."},
		{Counter{Name: "shapes", Value: st.Shapes}, "Different masks by which they are found."},
	}
	for i, n := range st.Events {
		e := dataplane.CacheEvent(i)
		all = append(all, cacheValue{Counter{Name: e.String(), Value: n}, e.Sentence()})
	}
	for _, o := range p.sw.CacheShapes() {
		by := cmp.Or(p.sw.Names().Table(o.Table), fmt.Sprint(o.Table)) + ": " + cmp.Or(o.Fields, "nothing")
		all = append(all, cacheValue{Counter{Name: "shape", Label: by, Value: o.Packets}, "Packets that took a stretch from " + by})
	}
	return append(all, p.offloadValues()...)
}

func (p *pipeline) cacheRecords() (all []Counter) {
	for _, v := range p.cacheValues() {
		all = append(all, v.Counter)
	}
	return all
}

func (p *pipeline) writeCache(w io.Writer, _ query) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVALUE\tMEANING")
	for _, v := range p.cacheValues() {
		fmt.Fprintf(t, "%s\t%d\t%s\n", v.Name, v.Value, v.meaning)
	}
	return t.Flush()
}

// collectCache hands the counters to Prometheus.
func (p *pipeline) collectCache(ch chan<- prometheus.Metric) {
	st := p.sw.Cache()
	gauge(ch, cacheEntries, st.Entries)
	gauge(ch, cacheRoom, st.Room)
	gauge(ch, cacheStretches, st.Stretches)
	gauge(ch, cacheShapes, st.Shapes)
	for i, n := range st.Events {
		counter(ch, cacheEvents, n, dataplane.CacheEvent(i).String())
	}
}
