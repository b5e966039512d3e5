package answer

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/diagram"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// manyEntries is how many the pipeline of the benchmark has.
const manyEntries = 100_000

// loadMany loads a pipeline of two tables with many entries.
func loadMany(t testing.TB, n int) *pipeline.Pipeline {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "table=0, priority=%d,ip,nw_src=10.%d.%d.%d actions=set_field:%d->reg1,goto_table:%d\n", 100+i%3, i>>16, i>>8&255, i&255, i, 1+i%5)
	}
	for i := range 5 {
		fmt.Fprintf(&b, "table=%d, priority=0 actions=output:1\n", 1+i)
	}
	path := filepath.Join(t.TempDir(), "many.flows")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Files{Flows: path}.Beside().Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// BenchmarkCounters is what the page costs in a second, of a pipeline with many
// entries.
func BenchmarkCounters(b *testing.B) {
	p := loadMany(b, manyEntries)
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		size = len(counterBytes(b, p))
	}
	b.ReportMetric(float64(size), "bytes/answer")
}

// TestMapLooks: the map that counters have is the one that is drawn from a dump,
// after packets, with learned entries, and when the pipeline has changed.
func TestMapLooks(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	want := func(when string) {
		t.Helper()
		program := &flow.Program{Names: n.Switch.Names(), First: n.Switch.First()}
		packets := map[*flow.Entry]uint64{}
		for _, e := range n.Switch.Flows() {
			program.Entries = append(program.Entries, e.Entry)
			packets[e.Entry] = e.Packets
		}
		for _, g := range n.Switch.Groups() {
			program.Groups = append(program.Groups, g.Group)
		}
		m := diagram.Build(program, tables.Stage, func(e *flow.Entry) uint64 { return packets[e] })
		got := n.pipelineMap()
		for i := range got.Tables {
			m.Tables[i].Dropped = got.Tables[i].Dropped // those that no entry asked for too
		}
		if !reflect.DeepEqual(m, got) {
			t.Errorf("%s: the map is\n%+v\nwant\n%+v", when, got, m)
		}
	}
	want("at first")
	for i := range 9 {
		n.send(t, nodeClient, syn("10.96.0.24", uint16(1000+i)), packet.Tunnel{}, nodeWeb)
		want("after a packet")
	}
	flows := n.Switch.Flows()
	if err := n.Switch.Apply(&flow.Bundle{Delete: []*flow.Entry{flows[len(flows)-1].Entry}}); err != nil {
		t.Fatal(err)
	}
	want("without an entry")
}

// TestCountersAreCheap: what the page asks for once a second allocates, and sends, no
// more when there are more entries.
func TestCountersAreCheap(t *testing.T) {
	look := func(entries int) (allocs float64, size int) {
		p := loadMany(t, entries)
		allocs = testing.AllocsPerRun(5, func() { size = len(counterBytes(t, p)) })
		return allocs, size
	}
	few, short := look(100)
	many, long := look(10_000)
	if many > few+10 || long > short+100 {
		t.Errorf("of 100 entries %v allocations for %d bytes, of 10,000 %v for %d", few, short, many, long)
	}
}

// counterBytes is an answer to GET /counters.
func counterBytes(t testing.TB, p *pipeline.Pipeline) []byte {
	t.Helper()
	b, err := New(p).CounterText(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPoliciesAreCheap: what a scrape and top ask of policies allocates no more when
// tables that count no policies have more entries.
func TestPoliciesAreCheap(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	look := func() float64 {
		return testing.AllocsPerRun(5, func() {
			if len(n.policies()) == 0 {
				t.Error("there are no policies")
			}
		})
	}
	few := look()
	bundle := &flow.Bundle{}
	routing, err := n.tableID("L3Forwarding")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		e, err := parse.Entry(fmt.Sprintf("table=%d, priority=7,ip,nw_dst=11.%d.%d.0/24 actions=drop", routing, i>>8, i&255), nil)
		if err != nil {
			t.Fatal(err)
		}
		bundle.Add = append(bundle.Add, e)
	}
	if err := n.Switch.Apply(bundle); err != nil {
		t.Fatal(err)
	}
	if many := look(); many > few+10 {
		t.Errorf("%v allocations, and %v with 10,000 entries for routes", few, many)
	}
}
