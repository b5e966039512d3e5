package dataplane

// unusedAfter is how long a shortcut stays that no packet takes, in nanoseconds:
// less than any timeout of a connection that has one (conntrack.SendAway).
const unusedAfter = 15 * second

// withdraw makes the kernel take no shortcut that there is. When it returns no
// packet is under way by one.
func (s *shortcuts) withdraw() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == 0 {
		return
	}
	if s.generation++; s.generation == 0 {
		s.generation = 1
	}
	s.kernel.Generation().Store(0) // until there is one of the next
	s.kernel.Settle()
	s.creditAll()
	s.events[ShortcutWithdrawn].Add(uint64(s.current))
	s.current = 0
	select {
	case s.stale <- struct{}{}:
	default:
	}
}

// clearSlice is how many places are cleared while others wait for the lock.
const clearSlice = 256

// clearAway removes the shortcuts that cannot be taken any more.
func (s *shortcuts) clearAway() {
	for from, more := 0, true; more; from += clearSlice {
		more = s.clearSome(from)
	}
}

// clearSome is clearAway for some places, and says whether there are more.
func (s *shortcuts) clearSome(from int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := from; at < min(from+clearSlice, len(s.cuts)); at++ {
		if s.cuts[at].used && !s.takes(uint32(at)) {
			s.drop(uint32(at))
		}
	}
	s.endUnused()
	s.release()
	return from+clearSlice < len(s.cuts)
}

// drop ends a shortcut; its connection stays.
func (s *shortcuts) drop(at uint32) {
	c := &s.cuts[at]
	if s.byKey[c.key] == at {
		s.kernel.Delete(&c.key) // it was put, and there is nobody else to delete it
		delete(s.byKey, c.key)
	}
	k := s.kernel.Shortcut(at)
	if k.Generation.Swap(0) == s.generation {
		if s.current--; s.current == 0 {
			s.kernel.Generation().Store(0)
		}
	}
	conn := &s.conns[c.conn]
	for i, other := range conn.cuts {
		if other == at {
			conn.cuts = append(conn.cuts[:i], conn.cuts[i+1:]...)
			break
		}
	}
	c.used = false
	c.in.cuts--
	s.leftCuts = append(s.leftCuts, at)
}

// end ends a connection's shortcuts, and then its being away.
func (s *shortcuts) end(conn uint32) {
	c := &s.conns[conn]
	for len(c.cuts) > 0 {
		s.drop(c.cuts[0])
	}
	s.sw.conntrack.StopAway(c.id, conn)
	delete(s.byConn, c.id)
	s.leftConns = append(s.leftConns, conn)
}

// endUnused ends connections that have no shortcut any more.
func (s *shortcuts) endUnused() {
	for _, at := range s.byConn {
		if len(s.conns[at].cuts) == 0 {
			s.end(at)
		}
	}
}

// release waits until nobody uses what was ended, and takes the places back.
func (s *shortcuts) release() {
	if len(s.leftCuts)+len(s.leftConns) == 0 {
		return
	}
	s.kernel.Settle()
	now := s.sw.clock()
	for _, at := range s.leftCuts {
		s.credit(at, now)
		s.cuts[at] = cut{}
	}
	for _, at := range s.leftConns {
		s.tellConntrack(at, now)
		s.sw.conntrack.BringBack(s.conns[at].id, at)
		s.conns[at] = awayConn{}
	}
	s.freeCuts = append(s.freeCuts, s.leftCuts...)
	s.freeConns = append(s.freeConns, s.leftConns...)
	s.leftCuts, s.leftConns = s.leftCuts[:0], s.leftConns[:0]
}

// tend credits what has taken the shortcuts, keeps their connections alive, and
// ends what came back or is not used. It is called once a second, before
// anything expires.
func (s *shortcuts) tend(now int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.creditAll()
	for at := range s.cuts {
		if c := &s.cuts[at]; c.used && now-c.last > unusedAfter {
			s.count(ShortcutUnused)
			s.drop(uint32(at))
		}
	}
	for _, at := range s.byConn {
		if s.tellConntrack(at, now); !s.away(at) {
			s.count(ShortcutEnded)
			s.end(at)
		}
	}
	s.endUnused()
	s.release()
}

// tellConntrack starts a connection's timeout anew when packets have passed.
func (s *shortcuts) tellConntrack(at uint32, now int64) {
	if c := &s.conns[at]; c.moved {
		c.moved = false
		s.sw.conntrack.Moved(c.id, at, now)
	}
}

// close ends all shortcuts.
func (s *shortcuts) close() {
	if s != nil {
		s.withdraw()
		s.clearAway()
	}
}
