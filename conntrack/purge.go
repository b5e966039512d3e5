package conntrack

// Purge removes the live connections that match takes, and counts them. The
// table is locked for a slice at a time, also while match runs: it must call no
// method of the table.
func (t *Table) Purge(match func(*Conn) bool) int {
	purged := 0
	now := t.clock()
	for from, more := uint32(1), true; more; from += chunkSize {
		var n int
		n, more = t.purgeSlots(from, now, match)
		purged += n
	}
	return purged
}

// purgeSlots purges one slice of slots, and says whether there are more slots.
func (t *Table) purgeSlots(from uint32, now int64, match func(*Conn) bool) (purged int, more bool) {
	t.guard.enter()
	defer t.guard.leave()
	end := min(from+chunkSize, t.slab.top)
	for slot := from; slot < end; slot++ {
		e := t.slab.at(slot)
		if !e.live() || e.expires <= now {
			continue
		}
		if c := e.conn(now); match(&c) {
			t.remove(slot)
			purged++
		}
	}
	return purged, end < t.slab.top
}
