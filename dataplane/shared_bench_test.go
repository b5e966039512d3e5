package dataplane

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// What workers share that a packet may meet, by itself; with -cpu 1,2 so many workers
// use it at once. Learned entries are in learned_bench_test.go.

// BenchmarkNormal is what NORMAL asks of its addresses for a packet between two
// stations that are known.
func BenchmarkNormal(b *testing.B) {
	for _, n := range []int{16, 4096} {
		b.Run(fmt.Sprint("stations=", n), func(b *testing.B) {
			var t fdb
			for i := range n {
				t.learn(macKey{uint64(i), 0}, uint32(i%64), &t.stray, 1)
			}
			var workers atomic.Uint32
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				i := int(workers.Add(1)) * n / 2
				for ; pb.Next(); i++ {
					t.learn(macKey{uint64(i % n), 0}, uint32(i%n%64), &t.stray, 2)
					if _, ok := t.port(macKey{uint64((i + 1) % n), 0}, 2); !ok {
						b.Error("a station is not known")
						return
					}
				}
			})
		})
	}
}

// BenchmarkMeter is a packet at a meter that lets it pass, and at one that does not.
func BenchmarkMeter(b *testing.B) {
	for _, c := range []struct {
		name string
		rate uint32
	}{{"passes", 1 << 31}, {"drops", 1}} {
		b.Run(c.name, func(b *testing.B) {
			m := newMeter(&flow.Meter{ID: 1, PktPS: true, Bands: []flow.Band{{Rate: c.rate}}}, nil)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				t := new(bucketTally)
				for now := int64(1); pb.Next(); now += 100 {
					m.pass(t, 100, now)
				}
			})
		})
	}
}

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
	p, err := flow.ParseProgram(flow.Sources{Flows: flow.Text("flows", "table=0 actions=controller(max_len=128)")})
	if err != nil {
		b.Fatal(err)
	}
	sw, err := New(Config{Conntrack: conntrack.NewTable(conntrack.Config{Now: clockAtOne, Max: 16}), Clock: clockAtOne, Cache: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer sw.Close()
	if err := sw.Apply(BundleOf(p)); err != nil {
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
