package sched

import "time"

// The load of a worker that is behind does not show whether a second worker helps. If pods and
// workers share two processors, a worker that takes over one direction of a stream takes its time
// from the pods. So a port is moved on trial. If throughput does not rise, the port moves back,
// and no port moves for a while.

const (
	// trialTime is how long throughput is measured, before a move and after it.
	trialTime = 3 * CrowdWindow
	// trialGain is the ratio of throughput that makes a trial succeed.
	trialGain = 1.05
	// leastPause is the pause after a failed trial. Each further failure doubles it, up to
	// mostPause.
	leastPause = time.Second
	mostPause  = time.Minute
)

// Trial is a move on trial, or the measurement before it. One goroutine at a time may
// use it.
type Trial struct {
	measures bool
	moved    bool
	began    time.Duration // clock when the measurement began
	bytes    uint64        // that had been received then
	before   float64       // bytes a nanosecond, before the move
	pause    time.Duration // the last pause
	until    time.Duration // clock when the pause ends
}

// Step is the next step of a trial.
type Step uint8

const (
	Wait     Step = iota // nothing yet
	Move                 // move a port, and call Moved or NoMove
	TakeBack             // the move did not help
)

// Crowded is called by a worker that has been behind for a CrowdWindow; window is the time since
// the previous call.
//
//  1. The first calls measure throughput, and a later one moves a port.
//  2. A call trialTime after the move takes the port back if throughput has not risen.
//  3. If the calls stop for longer than trialTime, no worker is behind any more, and the
//     measurement is void.
//
// received returns the bytes that all ports have received.
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

// Moved records that a port was moved at now, when the ports had received some bytes.
func (t *Trial) Moved(now time.Duration, bytes uint64) {
	t.before, t.moved = t.rate(now, bytes), true
	t.start(now, bytes)
}

// NoMove records that no port is worth moving.
func (t *Trial) NoMove() { t.measures = false }

// start begins to measure.
func (t *Trial) start(now time.Duration, bytes uint64) {
	t.measures, t.began, t.bytes = true, now, bytes
}

// rate returns the bytes a nanosecond since start.
func (t *Trial) rate(now time.Duration, bytes uint64) float64 {
	return float64(bytes-t.bytes) / float64(now-t.began)
}

// end ends a trial that helped or is void.
func (t *Trial) end() { t.measures, t.moved, t.pause = false, false, 0 }

// fail ends a trial that did not help.
func (t *Trial) fail(now time.Duration) {
	t.measures, t.moved = false, false
	t.pause = min(mostPause, max(leastPause, 2*t.pause))
	t.until = now + t.pause
}
