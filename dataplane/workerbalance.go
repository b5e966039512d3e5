package dataplane

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Ports are together on the first worker as long as it keeps up. Two workers
// that have one end of a connection each take turns, and each is asleep, or
// spins in the other's way, when its turn comes: round trips take twice as long.
// A second worker pays where frames wait all the time.
//
// A worker is behind when a batch took all that its port might bring, for then
// more frames wait. One that was behind for most of a crowdWindow has one of the
// busiest worker's ports given to the idlest (relieve, workertrial.go), which is kept if
// more passes so. It does so itself, for on a machine that is full another thread may
// have to wait for long. When all workers together have little to do, their ports come
// together again; that, and a worker without time left, is runUpkeep's to see (balance).

const (
	// crowdWindow is how long a worker has to be behind to call for relief.
	crowdWindow = 10 * time.Millisecond
	// worthwhile is the part of a worker's time by which a move has to relieve
	// the busiest worker, and idleLoad what it has to have to be relieved.
	worthwhile = 0.1
	idleLoad   = 0.3
	// crowdedLoad is the part of a second after which a worker is relieved though
	// it kept up; gatherLoad is what all workers together may have to do for one
	// of them to do it.
	crowdedLoad = 0.95
	gatherLoad  = 0.6
)

// share is how much of its worker's time a port takes.
type share struct {
	spent  atomic.Uint64 // nanoseconds that its packets took
	before uint64        // spent at the begin of the window; under Switch.mu
	bits   atomic.Uint64 // part
}

// part is the port's part of its worker's time in the last window: 0 to 1.
func (s *share) part() float64 { return math.Float64frombits(s.bits.Load()) }

func (s *share) setPart(part float64) { s.bits.Store(math.Float64bits(part)) }

// next ends a window.
func (s *share) next(window time.Duration) {
	spent := s.spent.Load()
	s.setPart(float64(spent-s.before) / float64(window))
	s.before = spent
}

// crowding is what a worker notes of whether it keeps up.
type crowding struct {
	began  int64 // when the window did, nanoseconds
	behind int64 // nanoseconds of it in batches behind which frames waited
}

// note adds a batch that is over. It reports true, at the end of a window, when
// the worker was behind for most of it.
func (c *crowding) note(now, took int64, behind bool) bool {
	if behind {
		c.behind += took
	}
	window := now - c.began
	if window < int64(crowdWindow) {
		return false
	}
	crowded := 2*c.behind > window
	c.began, c.behind = now, 0
	return crowded
}

// balance is for once a second: it gathers the ports when there is little to
// do, and takes one from the busiest worker when that has no time left.
func (s *Switch) balance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.ports.Load().list
	s.nextWindow(list)
	load, total := loads(list, len(s.workers)), 0.0
	for _, l := range load {
		total += l
	}
	switch {
	case total < gatherLoad:
		s.gather(list)
	case slices.Max(load) >= crowdedLoad:
		s.spread(list)
	}
}

// nextWindow ends the window in which the ports' parts were taken, and returns
// how long it was. The caller holds s.mu.
func (s *Switch) nextWindow(list []*switchPort) time.Duration {
	now := s.clock()
	window := time.Duration(max(1, now-s.window))
	s.window = now
	for _, p := range list {
		p.share.next(window)
	}
	return window
}

// loads is the part of its time that each worker's ports took.
func loads(list []*switchPort, workers int) []float64 {
	load := make([]float64, workers)
	for _, p := range list {
		load[p.worker.Load()] += p.share.part()
	}
	return load
}

// idlest is the worker that new ports go to: the first, when all are idle.
func (s *Switch) idlest(list []*switchPort) int32 {
	load := loads(list, len(s.workers))
	return int32(slices.Index(load, slices.Min(load)))
}

// spread moves one port, if the busiest worker is better without it.
func (s *Switch) spread(list []*switchPort) {
	if p, to := bestMove(list, len(s.workers)); p != nil {
		s.move(p, to)
	}
}

// gather moves all ports to the first worker.
func (s *Switch) gather(list []*switchPort) {
	for _, p := range list {
		s.move(p, 0)
	}
}

// bestMove is the port to move from the busiest worker to the idlest, so that
// the busier of the two has the least to do; nil when that is not worthwhile.
func bestMove(list []*switchPort, workers int) (best *switchPort, to int) {
	load := loads(list, workers)
	most, least := slices.Max(load), slices.Min(load)
	from, to := slices.Index(load, most), slices.Index(load, least)
	if most < idleLoad {
		return nil, to
	}
	lowest := most - worthwhile
	for _, p := range list {
		if int(p.worker.Load()) != from || p.share.part() == 0 {
			continue
		}
		if after := max(most-p.share.part(), least+p.share.part()); after < lowest {
			best, lowest = p, after
		}
	}
	return best, to
}

// MovePort has another worker receive from a port. Nothing is lost or comes out
// of order: the old worker has sent on what it received before the new one
// receives; meanwhile frames wait in the port's own queue.
func (s *Switch) MovePort(no uint32, worker int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.portByNumber(no)
	if err != nil {
		return err
	}
	if worker < 0 || worker >= len(s.workers) {
		return fmt.Errorf("there is no worker %d: the switch has %d, from 0 on", worker, len(s.workers))
	}
	s.move(p, worker)
	return nil
}

// move is MovePort under the caller's s.mu.
func (s *Switch) move(p *switchPort, to int) {
	old := int(p.worker.Load())
	if old == to {
		return
	}
	from := s.workers[old]
	from.assign(slices.DeleteFunc(s.received(old), func(q *switchPort) bool { return q == p }))
	from.letGo()
	p.worker.Store(int32(to))
	s.workers[to].assign(s.received(to))
}
