package sched

import (
	"testing"
	"time"
)

// sharesOf makes a port of each worker and share of its time.
func sharesOf(shares ...[]float64) (list []*Share) {
	for w, of := range shares {
		for _, part := range of {
			s := new(Share)
			s.Spend(int64(part * float64(time.Second)))
			s.EndWindow(time.Second)
			s.Assign(w)
			list = append(list, s)
		}
	}
	return list
}

// TestBestMove: the port that goes is the one that leaves the busier of the two
// workers the least to do.
func TestBestMove(t *testing.T) {
	for _, c := range []struct {
		name   string
		shares [][]float64
		want   int // port, from 1; 0 for none
		to     int
	}{
		{"idle", [][]float64{{0.1, 0.1}, {}}, 0, 1},
		{"one port cannot be halved", [][]float64{{0.9}, {}}, 0, 1},
		{"one port that is the load stays, the others leave it", [][]float64{{0.2, 0.7}, {}}, 1, 1},
		{"two alike", [][]float64{{0.4, 0.4}, {}}, 1, 1},
		{"the one that fits", [][]float64{{0.5, 0.1, 0.3}, {0.2}}, 3, 1},
		{"balanced", [][]float64{{0.5}, {0.2, 0.25}}, 0, 1},
		{"not worth while", [][]float64{{0.5, 0.05}, {0.5}}, 0, 1},
		{"to the idlest of three", [][]float64{{0.3}, {0.4, 0.4}, {0.1}}, 2, 2},
		{"one worker", [][]float64{{0.5, 0.4}}, 0, 0},
		{"a port without packets never goes", [][]float64{{0, 0.9}, {}}, 0, 1},
	} {
		best, to := BestMove(sharesOf(c.shares...), len(c.shares))
		if best+1 != c.want || best >= 0 && to != c.to {
			t.Errorf("%s: port %d goes to worker %d, want port %d to %d", c.name, best+1, to, c.want, c.to)
		}
	}
}

// TestOverload: a worker calls for relief when it was behind for most of a
// window, and at its end only.
func TestOverload(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name   string
		took   int64
		behind func(batch int) bool
		calls  int
	}{
		{"every batch is full", ms, func(int) bool { return true }, 8},
		{"two of three are", ms, func(i int) bool { return i%3 != 0 }, 8},
		{"one of three is", ms, func(i int) bool { return i%3 == 0 }, 0},
		{"none is", ms, func(int) bool { return false }, 0},
		{"short ones between pauses", ms / 4, func(int) bool { return true }, 0},
	} {
		var w Overload
		calls := 0
		for i := range 80 {
			if w.NoteBatch(int64(i+1)*ms, c.took, c.behind(i)) {
				calls++
			}
		}
		if calls != c.calls {
			t.Errorf("%s: %d calls in 80 ms, want %d", c.name, calls, c.calls)
		}
	}
}
