package dataplane

import "sync"

// TimeEvery is of how many walks one is timed.
const TimeEvery = timeEvery

// Tend is what upkeep does every second with shortcuts.
func (s *Switch) Tend() { s.shortcuts.tend(s.clock()) }

// SkipLiveNumbers gives the next live traces the number of those before.
func (s *Switch) SkipLiveNumbers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed += liveNumbers - 1
}

// HoldLocks takes the switch's locks, but for those of rounds and the fragments'.
// Release gives them back.
func (s *Switch) HoldLocks() (release func()) {
	locks := []*sync.Mutex{&s.mu, &s.reading, &s.crediting, &s.fdb.mu}
	for _, t := range s.program.Load().tables {
		if t != nil {
			locks = append(locks, &t.live.learned.mu)
		}
	}
	for _, w := range s.workers {
		if w.cache != nil {
			locks = append(locks, &w.cache.listing)
		}
		if w.stretches != nil {
			locks = append(locks, &w.stretches.listing)
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

// Drain is Poll without what comes after the packets: shortcuts that they offer wait.
func (s *Switch) Drain() {
	for _, w := range s.workers {
		w.drain()
	}
}
