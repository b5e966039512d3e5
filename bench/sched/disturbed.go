package sched

import (
	"fmt"
	"time"
)

// MostDisturbed is the disturbed part up to which a measurement counts.
const MostDisturbed = 0.02

// ThreadWatch measures how much others have disturbed a thread since the watch began.
type ThreadWatch struct {
	path   string // of the thread's schedstat
	began  time.Time
	waited time.Duration
	stolen float64
}

// WatchThread begins to watch a thread of a process. process may be "self".
func WatchThread(process string, thread int) (*ThreadWatch, error) {
	w := &ThreadWatch{path: fmt.Sprintf("/proc/%s/task/%d/schedstat", process, thread), began: time.Now(), stolen: readTimes().steal}
	t, err := readThreadTime(w.path)
	w.waited = t.Waited
	return w, err
}

// DisturbedPart returns the disturbed part of the time since the watch began, from 0 to 1. In it the
// thread waited for a processor, or the host had the machine's processors.
func (w *ThreadWatch) DisturbedPart() (float64, error) {
	t, err := readThreadTime(w.path)
	long := time.Since(w.began).Seconds()
	stolen := (readTimes().steal - w.stolen) / ticksPerSecond
	return max((t.Waited-w.waited).Seconds(), stolen) / long, err
}
