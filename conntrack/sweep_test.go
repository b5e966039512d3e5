package conntrack

import (
	"testing"
	"time"
)

// many is the connections of the benchmarks of what goes over a whole table.
const many = 1_000_000

// BenchmarkPurge looks at a million connections and removes none.
func BenchmarkPurge(b *testing.B) {
	w := newBench(b, Config{Max: many, NewRate: -1})
	w.fillUDP(many)
	b.ReportAllocs()
	for b.Loop() {
		if n := w.Purge(func(*Conn) bool { return false }); n != 0 {
			b.Fatalf("%d were removed", n)
		}
	}
}

// BenchmarkSweepSlice is what a sweep does between two chances for others to
// run, in a table of a million connections: when none has expired, and when all
// have, which is the longest that it can take.
func BenchmarkSweepSlice(b *testing.B) {
	for _, expired := range []bool{false, true} {
		b.Run(map[bool]string{false: "live", true: "expired"}[expired], func(b *testing.B) {
			w := newBench(b, Config{Max: many, NewRate: -1})
			w.fillUDP(many)
			if expired {
				w.now += int64(time.Hour)
			}
			for b.Loop() {
				w.sweepSlots(sweepSlice, w.now)
			}
			if left := w.Stats().Entries; expired == (left == many) {
				b.Fatalf("%d connections are left", left)
			}
		})
	}
}
