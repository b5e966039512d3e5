package dataplane

import (
	"testing"
	"time"
)

// TestNextBudget: a port whose batches take long brings fewer frames a round,
// and more again when they do not.
func TestNextBudget(t *testing.T) {
	for _, c := range []struct {
		budget int
		took   time.Duration
		want   int
	}{
		{64, 0, 64}, {64, quantum, 64}, {64, quantum + 1, 32}, {32, time.Second, 16},
		{8, time.Second, leastBatch}, {9, time.Second, leastBatch}, {8, quantum, 16}, {48, 0, batchSize},
	} {
		if got := nextBudget(c.budget, c.took); got != c.want {
			t.Errorf("a batch within %d that took %v is followed by %d, want %d", c.budget, c.took, got, c.want)
		}
	}
}

// TestWakeBucket checks the bounds of the histogram.
func TestWakeBucket(t *testing.T) {
	for d, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, 999: 0, time.Microsecond: 1, 2 * time.Microsecond: 2, 3999: 2,
		4 * time.Microsecond: 3, 16383 * time.Microsecond: 14, 16384 * time.Microsecond: 15, time.Hour: 15,
	} {
		if got := wakeBucket(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}
