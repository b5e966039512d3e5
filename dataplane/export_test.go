package dataplane

// Tend is what upkeep does every second with shortcuts.
func (s *Switch) Tend() { s.shortcuts.tend(s.clock()) }
