package program

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestMeterOfTwoWorkers: workers that meet a meter at once pass, all together, as many
// packets as one would: no token is lost, and none taken twice.
func TestMeterOfTwoWorkers(t *testing.T) {
	const (
		rate, burst = 3000, 500 // packets a second, packets
		began, took = int64(1e9), int64(2e9)
		step        = 20_000 // nanoseconds between packets: 50,000 a second, 16 times the rate
		want        = burst + rate*took/1e9
	)
	for _, workers := range []int{1, 2} {
		m := newMeter(&flow.Meter{PktPS: true, Burst: true, Bands: []flow.Band{{Rate: 2 * rate, BurstSize: burst}, {Rate: rate, BurstSize: burst}}}, nil)
		var clock, passed, came atomic.Int64
		clock.Store(began)
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				var counts BucketCounts
				for now := clock.Load(); now < began+took; now = clock.Add(step) {
					came.Add(1)
					if m.Pass(&counts, 100, now) {
						passed.Add(1)
					}
				}
				counts.Publish()
			})
		}
		all.Wait()
		var counts BucketCounts
		for m.Pass(&counts, 100, began+took) { // what is left
			passed.Add(1)
			came.Add(1)
		}
		came.Add(1)
		counts.Publish()
		if n := passed.Load(); n != want {
			t.Errorf("%d workers passed %d packets, want %d", workers, n, want)
		}
		dropped := m.Buckets[0].Dropped.Packets.Load() + m.Buckets[1].Dropped.Packets.Load()
		if n := m.Came.Packets.Load(); n != uint64(came.Load()) || n-dropped != uint64(passed.Load()) {
			t.Errorf("of %d packets it counted %d, and %d dropped", came.Load(), n, dropped)
		}
	}
}

// TestMeterModified: a meter that is modified begins full, and goes on counting.
func TestMeterModified(t *testing.T) {
	var counts BucketCounts
	one := flow.Band{Rate: 1}
	m := newMeter(&flow.Meter{PktPS: true, Bands: []flow.Band{one}}, nil)
	m.Pass(&counts, 60, 1)
	m.Pass(&counts, 60, 1) // dropped
	counts.Publish()
	m = newMeter(&flow.Meter{PktPS: true, Bands: []flow.Band{one, one}}, m)
	if !m.Pass(&counts, 60, 1) {
		t.Error("it did not begin full")
	}
	counts.Publish()
	if m.Came.Packets.Load() != 3 || m.Came.Bytes.Load() != 180 || m.Buckets[0].Dropped.Packets.Load() != 1 || m.Buckets[1].Dropped.Packets.Load() != 0 {
		t.Errorf("%d packets, %d bytes, %d and %d dropped, want 3, 180, 1 and 0", m.Came.Packets.Load(), m.Came.Bytes.Load(),
			m.Buckets[0].Dropped.Packets.Load(), m.Buckets[1].Dropped.Packets.Load())
	}
}
