package dataplane

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// quantum is how long a port's batch may take. One that takes longer is
	// halved the next time, so that 64 segments of 64 kB do not keep the other
	// ports waiting for a millisecond.
	quantum    = 100 * time.Microsecond
	leastBatch = 8
)

// workerCounts is what a worker counts of itself.
type workerCounts struct {
	batches, packets, sleeps    atomic.Uint64
	working, spinning, sleeping atomic.Uint64 // nanoseconds
	wakes                       wakes
}

// charge reads the clock, and notes that the time since the last batch began
// was that batch's port's. From here on it is p's; nil when nothing came.
func (w *worker) charge(p *polled) {
	now := w.sw.clock()
	if was := w.served; was != nil {
		took := max(0, now-w.now)
		was.share.spent.Add(uint64(took))
		w.counts.working.Add(uint64(took))
		was.budget = nextBudget(was.budget, time.Duration(took))
	}
	w.served, w.now = p, now
}

// nextBudget is how many frames a port may bring next, after a batch within a
// budget took so long.
func nextBudget(budget int, took time.Duration) int {
	if took > quantum {
		return max(leastBatch, budget/2)
	}
	return min(batchSize, 2*budget)
}

// share is how much of its worker's time a port takes.
type share struct {
	spent  atomic.Uint64 // nanoseconds that its packets took
	before uint64        // spent at the begin of the window; under Switch.mu
	bits   atomic.Uint64 // part
}

// part is the port's part of its worker's time in the last window: 0 to 1.
func (s *share) part() float64 { return math.Float64frombits(s.bits.Load()) }

func (s *share) setPart(part float64) { s.bits.Store(math.Float64bits(part)) }

// next ends a window.
func (s *share) next(window time.Duration) {
	spent := s.spent.Load()
	s.setPart(float64(spent-s.before) / float64(window))
	s.before = spent
}

// WorkerStats is what a worker did since the switch was made.
type WorkerStats struct {
	No                        int
	Ports                     []uint32 // that it receives from, by number
	Blind                     int      // how many of them the kernel announces no frames of: asked every millisecond
	Batches, Packets          uint64
	Sleeps                    uint64
	Working, Spinning, Asleep time.Duration
	// Load is the part of its time that packets took in the last window of
	// balanceEvery seconds: 0 to 1.
	Load float64
	// Wakes counts how long it took to run again when it was called in its
	// sleep, about once a second: bucket i is for less than 2^i microseconds.
	Wakes [WakeBuckets]uint64
}

// Workers returns what the workers did, by number.
func (s *Switch) Workers() []WorkerStats {
	var all []WorkerStats
	for i, w := range s.workers {
		c := &w.counts
		st := WorkerStats{
			No: i, Batches: c.batches.Load(), Packets: c.packets.Load(), Sleeps: c.sleeps.Load(),
			Working: time.Duration(c.working.Load()), Spinning: time.Duration(c.spinning.Load()), Asleep: time.Duration(c.sleeping.Load()),
		}
		set := w.receive.Load()
		st.Blind = set.blind
		for _, p := range set.list {
			st.Ports = append(st.Ports, p.no)
			st.Load += p.share.part()
		}
		for b := range c.wakes.counts {
			st.Wakes[b] = c.wakes.counts[b].Load()
		}
		all = append(all, st)
	}
	return all
}

const (
	// balanceEvery is how many seconds a window of the balance has.
	balanceEvery = 5
	// worthwhile is the part of a worker's time by which a move has to relieve
	// the busiest worker, and idleLoad what it has to have to be relieved.
	worthwhile = 0.1
	idleLoad   = 0.3
)

// balance looks at what the ports took of the workers' time since it was last
// called, and moves one port if the busiest worker is better without it.
func (s *Switch) balance(window time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.ports.Load().list
	for _, p := range list {
		p.share.next(window)
	}
	if p, to := bestMove(list, len(s.workers)); p != nil {
		s.move(p, to)
	}
}

// bestMove is the port to move from the busiest worker to the idlest, so that
// the busier of the two has the least to do; nil when that is not worthwhile.
func bestMove(list []*switchPort, workers int) (best *switchPort, to int) {
	load := make([]float64, workers)
	for _, p := range list {
		load[p.worker.Load()] += p.share.part()
	}
	most, least := slices.Max(load), slices.Min(load)
	from, to := slices.Index(load, most), slices.Index(load, least)
	if most < idleLoad {
		return nil, to
	}
	lowest := most - worthwhile
	for _, p := range list {
		if int(p.worker.Load()) != from || p.share.part() == 0 {
			continue
		}
		if after := max(most-p.share.part(), least+p.share.part()); after < lowest {
			best, lowest = p, after
		}
	}
	return best, to
}

// MovePort has another worker receive from a port. Nothing is lost or comes out
// of order: the old worker has sent on what it received before the new one
// receives; meanwhile frames wait in the port's own queue.
func (s *Switch) MovePort(no uint32, worker int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portByNumber(no)
	if err != nil {
		return err
	}
	if worker < 0 || worker >= len(s.workers) {
		return fmt.Errorf("there is no worker %d: the switch has %d, from 0 on", worker, len(s.workers))
	}
	s.move(p, worker)
	return nil
}

// move is MovePort under the caller's s.mu.
func (s *Switch) move(p *switchPort, to int) {
	old := int(p.worker.Load())
	if old == to {
		return
	}
	from := s.workers[old]
	from.assign(slices.DeleteFunc(s.received(old), func(q *switchPort) bool { return q == p }))
	from.letGo()
	p.worker.Store(int32(to))
	s.workers[to].assign(s.received(to))
}
