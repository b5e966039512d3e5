package dataplane

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
