package gc

import (
	"math"
	"runtime"
	"runtime/metrics"
	"time"
)

// collectEvery is the pause between two collections.
const collectEvery = 5 * time.Millisecond

// collections is how many collections there were, and how long they took together.
type collections struct {
	n    int
	took time.Duration
}

// runCollections collects garbage until stop is closed.
func runCollections(stop <-chan struct{}) (c collections) {
	for {
		select {
		case <-stop:
			return c
		case <-time.After(collectEvery):
			begin := time.Now()
			runtime.GC()
			c.took += time.Since(begin)
			c.n++
		}
	}
}

// pauses is Go's histogram of stop-the-world pauses.
type pauses metrics.Float64Histogram

// readPauses reads the histogram of all pauses so far.
func readPauses() *pauses {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	return (*pauses)(sample[0].Value.Float64Histogram())
}

// longestSince returns the upper bound of the longest pause that is in p and not in before. If the bound
// is infinite, it returns the lower one.
func (p *pauses) longestSince(before *pauses) time.Duration {
	for i := len(p.Counts) - 1; i >= 0; i-- {
		if p.Counts[i] == before.Counts[i] {
			continue
		}
		bound := p.Buckets[i+1]
		if math.IsInf(bound, 1) {
			bound = p.Buckets[i]
		}
		return time.Duration(bound * float64(time.Second))
	}
	return 0
}
