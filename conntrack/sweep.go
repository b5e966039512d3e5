package conntrack

import "time"

// Expiry. A connection whose time has passed is never found again, whether it
// has been removed or not; the sweep gives its slot back. It walks the slab
// round and round, as far per call as keeps one round below sweepRound, and
// lets packets in between slices.

const (
	sweepRound = 30 * time.Second
	sweepSlice = 4096 // slots per hold of the lock
)

// sweeper is how far the sweep has come.
type sweeper struct {
	at   uint32
	last int64
}

// Sweep removes connections whose time has passed at now. It is called about
// once a second, off the packet path.
func (t *Table) Sweep(now int64) {
	for left := t.due(now); left > 0; left -= sweepSlice {
		t.guard.enter()
		t.sweepSlots(min(left, sweepSlice), now)
		t.guard.leave()
	}
}

// due is how many slots to look at now.
func (t *Table) due(now int64) int {
	t.guard.enter()
	defer t.guard.leave()
	elapsed := min(max(now-t.sweeper.last, 0), int64(sweepRound))
	t.sweeper.last = now
	slots := int64(t.slab.top)
	return int(min(slots, slots*elapsed/int64(sweepRound)+sweepSlice))
}

// sweepSlots looks at the next n slots.
func (t *Table) sweepSlots(n int, now int64) {
	for range min(n, int(t.slab.top)) {
		t.sweeper.at++
		if t.sweeper.at >= t.slab.top {
			t.sweeper.at = 1
		}
		if t.sweeper.at >= t.slab.top {
			return
		}
		if e := t.slab.at(t.sweeper.at); e.live() && e.expires <= now {
			t.remove(t.sweeper.at)
			t.stats.Expired++
		}
	}
}
