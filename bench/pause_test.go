package bench

import (
	"math"
	"testing"
	"time"
)

// TestTurns runs the profile's measurement with few connections: a busy worker
// allocates nothing, and is collected beside.
func TestTurns(t *testing.T) {
	program, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := openTurns(program, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	readings, err := s.measure(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readings {
		switch r.name {
		case "allocations of a packet":
			if r.value > 0.1 {
				t.Errorf("%v allocations for a packet", r.value)
			}
		default:
			if r.value <= 0 {
				t.Errorf("%s: %v %s", r.name, r.value, r.unit)
			}
		}
	}
}

func TestLongestSince(t *testing.T) {
	at := func(counts ...uint64) *pauses {
		return &pauses{Counts: counts, Buckets: []float64{0, 1e-6, 1e-3, math.Inf(1)}}
	}
	for _, c := range []struct {
		before, after *pauses
		want          time.Duration
	}{
		{at(1, 2, 3), at(1, 2, 3), 0},
		{at(1, 0, 3), at(2, 0, 3), time.Microsecond},
		{at(1, 0, 3), at(2, 1, 3), time.Millisecond},
		{at(0, 0, 0), at(0, 0, 1), time.Millisecond}, // at least
	} {
		if got := c.after.longestSince(c.before); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.before.Counts, c.after.Counts, got, c.want)
		}
	}
}
