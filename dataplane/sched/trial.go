package sched

import "time"

// Whether a second worker helps one that is behind does not follow from how much it has
// to do. If pods and workers share two processors, the worker that takes over one
// direction of a stream takes its time from the pods. So a port is moved on trial. It
// comes back if not more passes than before, and then for a while none is moved.

const (
	// trialTime is how long what passes is measured, before a move and after it.
	trialTime = 3 * CrowdWindow
	// trialGain is how many times as many bytes have to pass.
	trialGain = 1.05
	// No port is moved for leastPause after a trial in vain, and for twice as long after
	// each that follows, up to mostPause.
	leastPause = time.Second
	mostPause  = time.Minute
)

// Trial is a move on trial, or the measurement before it. One goroutine at a time may
// use it.
type Trial struct {
	measures bool
	moved    bool
	began    time.Duration // clock, since when it is measured
	bytes    uint64        // that had been received then
	before   float64       // bytes a nanosecond, before the move
	pause    time.Duration // the last one
	until    time.Duration // clock, when it ends
}

// Step is what to do next about a trial.
type Step uint8

const (
	Wait     Step = iota // nothing yet
	Move                 // move a port, and call Moved or NoMove
	TakeBack             // the move did not help
)

// Crowded is for the call of a worker that has been behind for a CrowdWindow, window
// after the call before. The first calls measure what passes, the next one moves a port.
// A call after the same time again takes it back if that did not help. If the calls do
// not follow each other, no worker is behind any more, and what was measured says nothing
// about now. received returns the bytes that all ports have received.
func (t *Trial) Crowded(now, window time.Duration, received func() uint64) Step {
	switch {
	case window > trialTime:
		t.end()
	case now < t.until || t.measures && now-t.began < trialTime:
	case !t.measures:
		t.start(now, received())
	case !t.moved:
		return Move
	case t.rate(now, received()) >= trialGain*t.before:
		t.end()
	default:
		t.fail(now)
		return TakeBack
	}
	return Wait
}

// Moved says that a port was moved at now, when so many bytes had been received.
func (t *Trial) Moved(now time.Duration, bytes uint64) {
	t.before, t.moved = t.rate(now, bytes), true
	t.start(now, bytes)
}

// NoMove says that no port is worth moving.
func (t *Trial) NoMove() { t.measures = false }

// start begins to measure.
func (t *Trial) start(now time.Duration, bytes uint64) {
	t.measures, t.began, t.bytes = true, now, bytes
}

// rate returns the bytes a nanosecond since start.
func (t *Trial) rate(now time.Duration, bytes uint64) float64 {
	return float64(bytes-t.bytes) / float64(now-t.began)
}

// end ends a trial that helped, or has become pointless.
func (t *Trial) end() { t.measures, t.moved, t.pause = false, false, 0 }

// fail ends a trial that did not help.
func (t *Trial) fail(now time.Duration) {
	t.measures, t.moved = false, false
	t.pause = min(mostPause, max(leastPause, 2*t.pause))
	t.until = now + t.pause
}
