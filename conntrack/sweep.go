package conntrack

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Expiry. A connection whose time has passed is never found again, whether it
// has been removed or not; the sweep gives its cell back. It walks the arena
// round and round, as far per call as keeps one round below sweepRound. It
// holds no lock but those of the connections it removes, and reads one cache
// line of each cell.

const (
	sweepRound = 30 * time.Second
	// sweepSlice is the slots between two chances for others to run: 3 µs, and
	// 120 when all have expired (CT-40).
	sweepSlice = 256
)

// sweeper is how far the sweep has come.
type sweeper struct {
	at   atomic.Uint32 // slots looked at, counted on and on
	last atomic.Int64
}

// Sweep removes connections whose time has passed at now. It is called about
// once a second, off the packet path.
func (t *Table) Sweep(now int64) {
	for left := t.due(now); left > 0; left -= sweepSlice {
		start := time.Now()
		t.sweepSlots(min(left, sweepSlice), now)
		took := int64(time.Since(start))
		t.counts.sweepLast.Store(took)
		t.counts.sweepTime.Add(took)
		runtime.Gosched()
	}
}

// due is how many slots to look at now.
func (t *Table) due(now int64) int {
	elapsed := min(max(now-t.sweeper.last.Swap(now), 0), int64(sweepRound))
	slots := int64(t.arena.top.Load())
	return int(min(slots, slots*elapsed/int64(sweepRound)+sweepSlice))
}

// sweepSlots looks at the next n slots.
func (t *Table) sweepSlots(n int, now int64) {
	slots := t.arena.top.Load() - 1
	if slots == 0 {
		return
	}
	n = min(n, int(slots))
	end := t.sweeper.at.Add(uint32(n))
	for i := end - uint32(n); i != end; i++ {
		slot := i%slots + 1
		c := t.arena.at(slot)
		if h := c.head.Load(); live(h) && c.expires() <= now {
			t.expire(handle{slot, uint32(h)}, now)
		}
	}
}
