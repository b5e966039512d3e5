package dataplane

import (
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
)

// Benchmarks of each thing that workers share and a packet may use. With -cpu 1,2 that many
// workers use it at once. Learned entries are in learned_bench_test.go.

// BenchmarkCopies is a copy of a frame, given back by the batch.
func BenchmarkCopies(b *testing.B) {
	b.RunParallel(func(pb *testing.PB) {
		w := newWorker(nil)
		f := packet.NewFrame(make([]byte, 256), nil)
		f.SetLen(64)
		for pb.Next() {
			w.release(w.copyFrame(f))
			if len(w.done) == batchSize {
				packet.Release(w.done)
				w.done = w.done[:0]
			}
		}
	})
}

// BenchmarkPacketInFull is a packet for an agent that does not keep up.
func BenchmarkPacketInFull(b *testing.B) {
	p, err := parse.Program(parse.Sources{Flows: parse.Text("flows", "table=0 actions=controller(max_len=128)")})
	if err != nil {
		b.Fatal(err)
	}
	sw, err := New(Config{Conntrack: conntrack.NewTable(conntrack.Config{Now: clockAtOne, Max: 16}), Clock: clockAtOne, Cache: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer sw.Close()
	if err := sw.Apply(flow.BundleOf(p)); err != nil {
		b.Fatal(err)
	}
	w, f := sw.workers[0], packet.NewFrame(make([]byte, 512), nil)
	f.SetLen(200)
	b.ReportAllocs()
	for b.Loop() {
		w.walk.packet(f, 1)
		w.done = w.done[:0]
	}
}

func clockAtOne() int64 { return 1 }
