package conntrack

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack/store"
)

// Expiry:
//
//  1. A lookup never finds a connection whose time has passed, whether it has been removed or
//     not. So the sweep may be late.
//  2. The sweep walks the arena in a circle, and frees the cells of expired connections. A call
//     walks as far as it must to finish a round in sweepRound.
//  3. The sweep holds only the locks of the connection that it removes, and reads one cache line
//     of each cell. So it does not stop the workers.
//  4. A packet may advance a connection while the sweep removes it. The expiry decides which of
//     the two comes first (store.Cell, rule 6).

const (
	sweepRound = 30 * time.Second
	// sweepSlice is how many slots are swept before other goroutines may run. It takes 3 µs,
	// and 120 µs if all connections have expired (CT-40).
	sweepSlice = 256
)

// sweeper is the progress of the sweep.
type sweeper struct {
	at   atomic.Uint32 // slots swept since the start, modulo 2^32
	last atomic.Int64
}

// Sweep removes connections that have expired at now. The caller calls it about once a second,
// outside the packet path.
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

// due is how many slots to sweep now.
func (t *Table) due(now int64) int {
	elapsed := min(max(now-t.sweeper.last.Swap(now), 0), int64(sweepRound))
	slots := int64(t.arena.End())
	return int(min(slots, slots*elapsed/int64(sweepRound)+sweepSlice))
}

// sweepSlots sweeps the next n slots.
func (t *Table) sweepSlots(n int, now int64) {
	slots := t.arena.End() - 1
	if slots == 0 {
		return
	}
	n = min(n, int(slots))
	end := t.sweeper.at.Add(uint32(n))
	for i := end - uint32(n); i != end; i++ {
		slot := i%slots + 1
		c := t.arena.At(slot)
		if h := c.Head(); store.Live(h) && c.Expires() <= now {
			t.expire(store.Handle{Slot: slot, Gen: uint32(h)}, now)
		}
	}
}
