package conntrack

// Purge removes the live connections that match takes, and counts them. No lock
// is held while match runs.
func (t *Table) Purge(match func(*Conn) bool) int {
	purged := 0
	var c Conn
	now := t.clock()
	t.each(func(e *entry, h handle) {
		if e.expires <= now {
			return
		}
		if e.show(&c, now); match(&c) && t.remove(h, whatever, now) {
			purged++
		}
	})
	return purged
}
