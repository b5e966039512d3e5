package dataplane

import "time"

// Whether a second worker helps one that is behind does not follow from how much it has
// to do: where pods and workers share two processors, the worker that takes over one
// direction of a stream takes its time from the pods. So a port is moved on trial: it
// comes back if not more passes than before, and then for a while none is moved.

const (
	// trialTime is how long what passes is measured, before a move and after it.
	trialTime = 3 * crowdWindow
	// trialGain is how many times as many bytes have to pass.
	trialGain = 1.05
	// No port is moved for leastPause after a trial in vain, and for twice as long after
	// each that follows, up to mostPause.
	leastPause = time.Second
	mostPause  = time.Minute
)

// trial is a move under way, or what is measured before it. All of it is under
// Switch.mu.
type trial struct {
	measures bool
	began    time.Duration // clock, since when it is measured
	bytes    uint64        // that had been received then
	before   float64       // bytes a nanosecond, before the move
	port     *switchPort   // that was moved; nil before
	from     int           // the worker it was moved from
	pause    time.Duration // the last one
	until    time.Duration // clock, when it ends
}

// start begins to measure.
func (t *trial) start(now time.Duration, bytes uint64) {
	t.measures, t.began, t.bytes = true, now, bytes
}

// rate is the bytes a nanosecond since start.
func (t *trial) rate(now time.Duration, bytes uint64) float64 {
	return float64(bytes-t.bytes) / float64(now-t.began)
}

// end is that of a trial that helped, or has become pointless.
func (t *trial) end() { t.measures, t.port, t.pause = false, nil, 0 }

// inVain is the end of one that did not help.
func (t *trial) inVain(now time.Duration) {
	t.measures, t.port = false, nil
	t.pause = min(mostPause, max(leastPause, 2*t.pause))
	t.until = now + t.pause
}

// relieve is the call of a worker that has been behind for a crowdWindow. The first
// calls measure what passes, the next one moves a port, and one that comes after as long
// takes it back if that did not help. When the calls do not follow each other nobody is
// behind any more, and what was measured says nothing about now. So it is when the
// switch is being changed.
func (s *Switch) relieve() {
	if len(s.workers) < 2 || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	list, t := s.ports.Load().list, &s.trial
	follows := s.nextWindow(list) <= 3*crowdWindow
	now := time.Duration(s.window)
	switch {
	case !follows:
		t.end()
	case now < t.until || t.measures && now-t.began < trialTime:
	case !t.measures:
		t.start(now, received(list))
	case t.port == nil:
		s.try(list, now)
	default:
		s.judge(list, now)
	}
}

// try moves a port on trial, if the busiest worker is better without one.
func (s *Switch) try(list []*switchPort, now time.Duration) {
	t := &s.trial
	p, to := bestMove(list, len(s.workers))
	if p == nil {
		t.measures = false
		return
	}
	bytes := received(list)
	t.before = t.rate(now, bytes)
	t.port, t.from = p, int(p.worker.Load())
	s.move(p, to)
	t.start(now, bytes)
}

// judge takes the port back that was moved, unless more passes since.
func (s *Switch) judge(list []*switchPort, now time.Duration) {
	t := &s.trial
	if t.rate(now, received(list)) >= trialGain*t.before {
		t.end()
		return
	}
	if s.ports.Load().byNumber[t.port.no] == t.port {
		s.move(t.port, t.from)
	}
	t.inVain(now)
}

// received is the bytes that ports have received.
func received(list []*switchPort) (bytes uint64) {
	for _, p := range list {
		bytes += p.port.Stats().RxBytes
	}
	return bytes
}
