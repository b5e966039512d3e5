package dataplane

import (
	"fmt"
	"slices"
	"time"

	"github.com/antrail/antrail/dataplane/sched"
)

// All ports stay on the first worker while it keeps up.
//
//  1. If the two ends of a connection are on two workers, these take turns. When a worker's turn
//     comes, it sleeps, or spins in the other's way. So round trips take twice as long.
//  2. A second worker pays off if frames wait all the time.
//  3. A worker is behind if a batch had as many frames as its port may bring, because then more
//     frames wait.
//  4. If a worker was behind for most of a CrowdWindow, the busiest worker gives one of its ports
//     to the idlest (relieve), on trial (sched.Trial). The worker that is behind does this
//     itself, because on a full machine another thread may have to wait for long.
//  5. If all workers together have little to do, their ports gather on the first one. That, and a
//     worker without time left, is detected once a second (balance).

// balance gathers or spreads the ports over the workers. It is called once a second.
func (s *Switch) balance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.ports.Load().list
	s.endWindow(list)
	switch sched.Balanced(sched.Loads(shares(list), len(s.workers))) {
	case sched.Gather:
		for _, p := range list {
			s.move(p, 0)
		}
	case sched.Spread:
		if i, to := sched.BestMove(shares(list), len(s.workers)); i >= 0 {
			s.move(list[i], to)
		}
	}
}

// endWindow ends the window that measured the ports' shares, and returns its length. The caller
// holds s.mu.
func (s *Switch) endWindow(list []*switchPort) time.Duration {
	now := s.clock()
	window := time.Duration(max(1, now-s.window))
	s.window = now
	for _, p := range list {
		p.share.EndWindow(window)
	}
	return window
}

// shares lists the shares of ports, in their order.
func shares(list []*switchPort) []*sched.Share {
	all := make([]*sched.Share, len(list))
	for i, p := range list {
		all[i] = &p.share
	}
	return all
}

// idlest returns the worker for new ports; the first one if all are idle.
func (s *Switch) idlest(list []*switchPort) int {
	load := sched.Loads(shares(list), len(s.workers))
	return slices.Index(load, slices.Min(load))
}

// relieve moves a port on trial, or takes one back. A worker calls it after it has been behind
// for a CrowdWindow. If somebody else holds s.mu, it does nothing.
func (s *Switch) relieve() {
	if len(s.workers) < 2 || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	list := s.ports.Load().list
	window := s.endWindow(list)
	now := time.Duration(s.window)
	switch s.trial.Crowded(now, window, func() uint64 { return received(list) }) {
	case sched.Move:
		s.moveOnTrial(list, now)
	case sched.TakeBack:
		if p := s.tried; s.ports.Load().byNumber[p.no] == p {
			s.move(p, s.triedFrom)
		}
	}
}

// moveOnTrial moves a port, if that improves the balance.
func (s *Switch) moveOnTrial(list []*switchPort, now time.Duration) {
	i, to := sched.BestMove(shares(list), len(s.workers))
	if i < 0 {
		s.trial.NoMove()
		return
	}
	bytes := received(list)
	s.tried, s.triedFrom = list[i], list[i].share.Worker()
	s.move(list[i], to)
	s.trial.Moved(now, bytes)
}

// received returns the bytes that ports have received.
func received(list []*switchPort) (bytes uint64) {
	for _, p := range list {
		bytes += p.port.Stats().RxBytes
	}
	return bytes
}

// MovePort gives a port to another worker. No packet is dropped or reordered: the old worker
// sends what it received before the new one receives. Meanwhile frames wait in the port's own
// queue.
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
	old := p.share.Worker()
	if old == to {
		return
	}
	from := s.workers[old]
	from.assign(slices.DeleteFunc(s.received(old), func(q *switchPort) bool { return q == p }))
	from.letGo()
	p.share.Assign(to)
	s.workers[to].assign(s.received(to))
}
