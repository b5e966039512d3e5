package sched

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// Clock is the clock for spinning and sleeping. These take real time, even if the switch has
// another clock.
func Clock() time.Duration { return time.Since(started) }

// WakeTimes measures how long a sleeping worker takes to run after a wake-up. The switch calls
// each worker every few seconds for that.
type WakeTimes struct {
	Asleep atomic.Bool
	Called atomic.Int64 // clock of the call; 0 when there was none
	Counts [telemetry.WakeBuckets]atomic.Uint64
}

// Sleeps is called by the worker before it sleeps and after.
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

// wakeBucket is the bucket of a wake-up. Bucket i has wake-ups from 2^(i-1) to below 2^i
// microseconds. The last one has all longer ones.
func wakeBucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(0, d.Microseconds()))), telemetry.WakeBuckets-1)
}

// started is the zero of Clock.
var started = time.Now()
