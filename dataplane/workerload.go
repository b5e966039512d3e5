package dataplane

import (
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
		was.chargeBatch(took)
		w.crowded = w.crowding.note(now, took, was.behind) || w.crowded
	}
	w.served, w.now = p, now
}

// chargeBatch charges a turn to its batch. The last turn of a batch sets how many
// frames the next batch may have.
func (p *polled) chargeBatch(took int64) {
	p.backlog.took += took
	if p.backlog.empty() {
		p.budget = nextBudget(p.budget, time.Duration(p.backlog.took))
		p.backlog.took = 0
	}
}

// nextBudget is how many frames a port may bring next, after a batch within a
// budget took so long.
func nextBudget(budget int, took time.Duration) int {
	if took > quantum {
		return max(leastBatch, budget/2)
	}
	return min(batchSize, 2*budget)
}

// WorkerStats is what a worker did since the switch was made.
type WorkerStats struct {
	No       int           `json:"worker"`
	Ports    []uint32      `json:"ofPorts,omitzero"` // that it receives from, by number
	Blind    int           `json:"blind"`            // how many of them the kernel announces no frames of: asked every millisecond
	Batches  uint64        `json:"batches"`
	Packets  uint64        `json:"packets"`
	Sleeps   uint64        `json:"sleeps"`
	Working  time.Duration `json:"workingNS"`
	Spinning time.Duration `json:"spinningNS"`
	Asleep   time.Duration `json:"asleepNS"`
	// KeptAwake is how long it kept idle processors awake.
	KeptAwake time.Duration `json:"keptAwakeNS"`
	// Load is the part of its time that packets took in the last second, or less
	// when a worker fell behind meanwhile: 0 to 1.
	Load float64 `json:"load"`
	// Wakes counts how long it took to run again when it was called in its
	// sleep, about once a second: bucket i is for less than 2^i microseconds.
	Wakes [WakeBuckets]uint64 `json:"wakes"`
}

// Workers returns what the workers did, by number.
func (s *Switch) Workers() []WorkerStats {
	var all []WorkerStats
	for i, w := range s.workers {
		c := &w.counts
		st := WorkerStats{
			No: i, Batches: c.batches.Load(), Packets: c.packets.Load(), Sleeps: c.sleeps.Load(),
			Working: time.Duration(c.working.Load()), Spinning: time.Duration(c.spinning.Load()), Asleep: time.Duration(c.sleeping.Load()),
			KeptAwake: w.wakefulness.total(),
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
