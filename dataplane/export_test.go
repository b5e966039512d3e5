package dataplane

import "sync"

// TimeEvery is of how many walks one is timed.
const TimeEvery = timeEvery

// Tend is what upkeep does every second with offload entries.
func (s *Switch) Tend() { s.offload.Tend(s.clock()) }

// SkipLiveNumbers gives the next live traces the number of those before.
func (s *Switch) SkipLiveNumbers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed += liveNumbers - 1
}

// HoldLocks takes the switch's locks, but for those of rounds and the fragments'.
// Release gives them back.
func (s *Switch) HoldLocks() (release func()) {
	locks := []*sync.Mutex{&s.mu, &s.reading, &s.crediting, &s.fdb.Changing}
	for _, t := range s.program.Load().Tables {
		if t != nil {
			locks = append(locks, &t.Live.Learned.Changing)
		}
	}
	for _, w := range s.workers {
		if w.cache != nil {
			locks = append(locks, &w.cache.listing)
		}
		if w.megaflows != nil {
			locks = append(locks, &w.megaflows.Listing)
		}
	}
	for _, l := range locks {
		l.Lock()
	}
	return func() {
		for _, l := range locks {
			l.Unlock()
		}
	}
}

// Drain is Poll without what comes after the packets: offload entries that they offer wait.
func (s *Switch) Drain() {
	for _, w := range s.workers {
		w.drain()
	}
}

// Upkeep does the upkeep of a second, in which all workers sleep. It returns how many were called.
func (s *Switch) Upkeep(second int) (called int) {
	for _, w := range s.workers {
		w.counts.wakes.Sleeps(true)
	}
	s.upkeep(second)
	for _, w := range s.workers {
		if w.counts.wakes.Called.Load() != 0 {
			called++
		}
	}
	return called
}
