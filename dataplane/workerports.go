package dataplane

import (
	"slices"
	"sync"
)

// Each round, a worker receives from its awake ports. A port without frames for quietRounds
// rounds is left to the poller, which names it when it has frames again. So a hundred quiet ports
// cost a busy one nothing. A wake-up costs only the ports that have frames.

// quietRounds is the number of empty rounds after which a port is left to the poller.
const quietRounds = 64

// receiveSet is the ports that a worker receives from. It is immutable.
type receiveSet struct {
	list  []*polled
	byNo  map[uint32]*polled
	blind int // ports that the poller cannot watch
}

// polled is a port as the worker that receives from it sees it.
type polled struct {
	*switchPort
	blind  bool // the poller cannot watch it: it is always awake
	awake  bool
	quiet  int    // rounds in a row that brought nothing
	budget int    // frames it may bring in a round
	firsts uint64 // packets of the last batch that the cache did not know
	behind bool   // the last batch was as long as allowed
}

// assign gives ports to the worker. The poller watches them from now on, and the worker's next
// round adopts them. The worker polls a port that the poller cannot watch every millisecond.
func (w *worker) assign(list []*switchPort) {
	had := w.receive.Load()
	set := &receiveSet{byNo: make(map[uint32]*polled, len(list))}
	for _, sp := range list {
		p := had.byNo[sp.no]
		if p == nil || p.switchPort != sp {
			p = &polled{switchPort: sp, budget: batchSize}
			p.blind = w.poller.Watch(sp.no, sp.port) != nil
		}
		if p.blind {
			set.blind++
		}
		set.list, set.byNo[sp.no] = append(set.list, p), p
	}
	for _, p := range had.list {
		if set.byNo[p.no] != p {
			w.poller.Unwatch(p.port)
		}
	}
	w.receive.Store(set)
	w.poller.Wake()
}

// assignPorts gives all workers their ports. The caller holds s.mu.
func (s *Switch) assignPorts() {
	for i, w := range s.workers {
		w.assign(s.received(i))
	}
}

// PauseReceiving makes the workers receive from no port until resume is called. A worker may
// finish its round. Meanwhile frames wait in the ports, and workers still send to ports. So
// several ports can become part of the switch at once: no packet of one misses another. If
// several pauses overlap, receiving resumes after the last one.
func (s *Switch) PauseReceiving() (resume func()) {
	s.pause(1)
	return sync.OnceFunc(func() { s.pause(-1) })
}

// pause begins a pause (by 1) or ends one (by -1).
func (s *Switch) pause(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pauses += by
	s.assignPorts()
}

// adopt takes the ports that were assigned since the last round, all awake. The caller holds
// busy.
func (w *worker) adopt() {
	set := w.receive.Load()
	if set == w.has {
		return
	}
	w.has = set
	clear(w.awake)
	w.awake = w.awake[:0]
	for _, p := range set.list {
		w.rouse(p)
	}
}

// rouse makes a port awake: each round receives from it.
func (w *worker) rouse(p *polled) {
	p.awake, p.quiet = true, 0
	w.awake = append(w.awake, p)
}

// choose rouses the ports that the poller named, and leaves quiet ones to the poller. The caller
// holds busy.
func (w *worker) choose() {
	for _, no := range w.woken {
		if p := w.has.byNo[no]; p != nil && !p.awake {
			w.rouse(p)
		}
	}
	w.woken = w.woken[:0]
	w.awake = slices.DeleteFunc(w.awake, func(p *polled) bool {
		p.awake = p.blind || p.quiet < quietRounds
		return !p.awake
	})
}
