package sched

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// CrowdWindow is how long a worker is behind before it asks for relief.
const CrowdWindow = 10 * time.Millisecond

const (
	// worthwhile is the part of a worker's time by which a move has to relieve the busiest
	// worker. idleLoad is the least load of a worker to be relieved.
	worthwhile = 0.1
	idleLoad   = 0.3
	// crowdedLoad is the load from which a worker is relieved though it keeps up. gatherLoad is
	// the total load below which one worker handles all ports.
	crowdedLoad = 0.95
	gatherLoad  = 0.6
)

// Overload measures whether a worker keeps up.
type Overload struct {
	began  int64 // when the window began, nanoseconds
	behind int64 // nanoseconds of the window in batches after which frames waited
}

// NoteBatch adds a batch that ended at now and took some nanoseconds. behind says that frames
// waited after it. NoteBatch returns true at the end of a window in which the worker was behind
// for most of the time.
func (c *Overload) NoteBatch(now, took int64, behind bool) bool {
	if behind {
		c.behind += took
	}
	window := now - c.began
	if window < int64(CrowdWindow) {
		return false
	}
	crowded := 2*c.behind > window
	c.began, c.behind = now, 0
	return crowded
}

// Share is the part of a worker's time that a port takes.
type Share struct {
	worker atomic.Int32
	spent  atomic.Uint64 // nanoseconds that its packets took, in total
	before uint64        // spent when the window began
	bits   atomic.Uint64 // of Part
}

// Worker returns the number of the worker that has the port.
func (s *Share) Worker() int { return int(s.worker.Load()) }

// Assign gives the port to a worker.
func (s *Share) Assign(worker int) { s.worker.Store(int32(worker)) }

// Spend adds nanoseconds that the port's packets took.
func (s *Share) Spend(took int64) { s.spent.Add(uint64(took)) }

// Part returns the port's part of its worker's time in the last window: 0 to 1.
func (s *Share) Part() float64 { return math.Float64frombits(s.bits.Load()) }

// EndWindow ends a window. One goroutine at a time may call it.
func (s *Share) EndWindow(window time.Duration) {
	spent := s.spent.Load()
	s.bits.Store(math.Float64bits(float64(spent-s.before) / float64(window)))
	s.before = spent
}

// Loads returns the part of its time that each worker's ports took.
func Loads(all []*Share, workers int) []float64 {
	load := make([]float64, workers)
	for _, s := range all {
		load[s.Worker()] += s.Part()
	}
	return load
}

// Balance is the step that Balanced suggests.
type Balance uint8

const (
	Leave  Balance = iota // every port stays
	Gather                // the total load is low: the first worker takes all ports
	Spread                // a worker has no time left
)

// Balanced returns the step for workers with given loads.
func Balanced(load []float64) Balance {
	total := 0.0
	for _, l := range load {
		total += l
	}
	switch {
	case total < gatherLoad:
		return Gather
	case slices.Max(load) >= crowdedLoad:
		return Spread
	}
	return Leave
}

// BestMove returns the index of the port to move from the busiest worker to the idlest. After
// that move, the busier of the two has the least possible load. It returns -1 if no move is
// worthwhile.
func BestMove(all []*Share, workers int) (best, to int) {
	load := Loads(all, workers)
	most, least := slices.Max(load), slices.Min(load)
	from, to := slices.Index(load, most), slices.Index(load, least)
	best = -1
	if most < idleLoad {
		return best, to
	}
	lowest := most - worthwhile
	for i, s := range all {
		part := s.Part()
		if s.Worker() != from || part == 0 {
			continue
		}
		if after := max(most-part, least+part); after < lowest {
			best, lowest = i, after
		}
	}
	return best, to
}
