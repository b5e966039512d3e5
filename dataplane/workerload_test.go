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

// TestPatience: short sleeps make a worker spin longer, long ones shorter,
// until it does not spin at all.
func TestPatience(t *testing.T) {
	var p patience
	for range 10 {
		p.slept(maxSpin / 2)
	}
	if p.span != maxSpin {
		t.Errorf("after short sleeps it spins for %v, want %v", p.span, maxSpin)
	}
	for range 10 {
		p.slept(time.Second)
	}
	if p.span != 0 {
		t.Errorf("after long sleeps it spins for %v, want none", p.span)
	}
	p.slept(0)
	if p.span != minSpin {
		t.Errorf("after one short sleep it spins for %v, want %v", p.span, minSpin)
	}
	p.vain = 2
	if p.slept(0); p.span != 0 {
		t.Errorf("it spins for %v though it was woken for nothing", p.span)
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
