package bench

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTurns runs the profile's measurement with few connections: a busy worker
// allocates nothing, and is collected beside.
func TestTurns(t *testing.T) {
	program, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := openTurns(program, 1000, 10)
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
		is[r.name] = r.value
		if r.value < 0 || r.value == 0 && !strings.Contains(r.name, " waited ") && !strings.Contains(r.name, " kept ") && r.unit != "allocs" {
			t.Errorf("%s: %v %s", r.name, r.value, r.unit)
		}
	}
	if n := is["allocations of a packet"]; n > 0.1 {
		t.Errorf("%v allocations for a packet", n)
	}
	for _, of := range []string{"", ", 10 rules"} {
		turn, kept, waited := is["longest turn with collections"+of], is["of it Go kept the worker"+of], is["of it the worker waited for a processor"+of]
		if turn == 0 || kept+waited > turn {
			t.Errorf("of a turn of %v µs%s the worker was kept for %v and waited for %v", turn, of, kept, waited)
		}
		if most := is["longest that Go kept the worker"+of]; most < kept {
			t.Errorf("the worker was kept for %v µs%s at most, but for %v in the longest turn", most, of, kept)
		}
	}
}

// TestThreadClock has a thread run and sleep.
func TestThreadClock(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := openThreadClock()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	read := func() time.Duration {
		now, err := c.read()
		if err != nil {
			t.Fatal(err)
		}
		return now.ran
	}
	const long = 20 * time.Millisecond
	begin := read()
	unix.Nanosleep(&unix.Timespec{Nsec: int64(long)}, nil)
	awake := read()
	for end := time.Now().Add(long); time.Now().Before(end); {
	}
	if asleep, busy := awake-begin, read()-awake; asleep > long/2 || busy <= 0 {
		t.Errorf("asleep the thread ran for %v, busy for %v", asleep, busy)
	}
	if n := testing.AllocsPerRun(100, func() { c.read() }); n != 0 {
		t.Errorf("%v allocations", n)
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
