package gc

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/bench/workload"
)

// TestTurns runs the measurement with few connections: a busy worker allocates nothing, and has turns
// beside rules.
func TestTurns(t *testing.T) {
	program, err := workload.ExampleProgram("two-nodes/node-a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := openTurns(program, turnOptions{connections: 1000, rules: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	readings, err := s.measure(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	is := map[string]float64{}
	for _, r := range readings {
		is[r.Name] = r.Value
		if r.Value < 0 || r.Value == 0 && !strings.Contains(r.Name, "parts") && r.Unit != "allocs" && r.Unit != "turns" {
			t.Errorf("%s: %v %s", r.Name, r.Value, r.Unit)
		}
	}
	if n := is["allocations of a packet"]; n > 0.1 {
		t.Errorf("%v allocations for a packet", n)
	}
	if _, ok := is["longest turn with collections, 10 rules"]; !ok {
		t.Errorf("no turns beside rules: %v", is)
	}
}

// TestNoteTurn checks that a source counts turns longer than a millisecond, and keeps the longest.
func TestNoteTurn(t *testing.T) {
	var s source
	for _, turn := range []time.Duration{time.Microsecond, longTurn, longTurn + 1, 3 * longTurn, 2 * longTurn} {
		s.noteTurn(turn)
	}
	if got := s.takeState(); got.long != 3 || got.longest != 3*longTurn {
		t.Errorf("%d longer than %v, the longest %v", got.long, longTurn, got.longest)
	}
	if got := s.takeState(); got.long != 3 || got.longest != 0 {
		t.Errorf("asked again: %d, %v", got.long, got.longest)
	}
}

// TestLongestSince checks which bound of a histogram's bucket counts.
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
