package sched

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// Clock is for spinning and sleeping, which take real time whatever clock the
// switch was made with.
func Clock() time.Duration { return time.Since(started) }

// WakeTimes measures how long a sleeping worker takes to run again once it is
// called, by calling it every second.
type WakeTimes struct {
	Asleep atomic.Bool
	Called atomic.Int64 // clock of the call; 0 when there was none
	Counts [telemetry.WakeBuckets]atomic.Uint64
}

// Sleeps is told by the worker before it sleeps and after.
func (w *WakeTimes) Sleeps(yes bool) {
	if yes {
		w.Called.Store(0) // a call that came too late for the last sleep
		w.Asleep.Store(true)
		return
	}
	w.Asleep.Store(false)
	if called := w.Called.Swap(0); called != 0 {
		w.Counts[wakeBucket(Clock()-time.Duration(called))].Add(1)
	}
}

// wakeBucket is the bucket of a wake-up. Bucket i is for those below 2^i microseconds
// that the one before is not for. The last one is for all longer ones.
func wakeBucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(0, d.Microseconds()))), telemetry.WakeBuckets-1)
}

// started is where clock counts from.
var started = time.Now()
