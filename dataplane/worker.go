package dataplane

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/sched"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// Workers run packets to completion.
//
//  1. A worker receives a batch from a port, walks each packet and transmits the results. Then it
//     turns to the next port.
//  2. No worker hands packets to another. So a port's packets leave in the order in which they
//     came.
//  3. In a round each port has one turn, of at most batchSize frames and turnSegments segments.
//     After a batch that took longer than quantum, the port's next batch is smaller. So a port
//     that floods has as many turns as a port with little traffic.
//  4. The next round begins one port further on, so that no port is always the first at a ring
//     that fills up.
//  5. A round takes one lock, and a batch reads the clock once. A replayed packet costs neither
//     (docs/architecture.md, Locks).

const batchSize = flowcache.BatchSize

// worker moves packets. Its fields belong to one goroutine, or to the holder of busy, except the
// counters.
type worker struct {
	sw          *Switch
	no          int   // its index among the workers
	now         int64 // clock of this batch, nanoseconds
	walk        walk
	scratch     lookup.Scratch
	batchCounts program.Counts
	timer       timer
	cache       *cache               // nil if it is off, and for Switch.outside
	rec         recording            // for the cache
	megaflows   *flowcache.Megaflows // nil if they are off, and for Switch.outside
	out         map[*switchPort]*[]*packet.Frame
	lastOut     *switchPort // the port whose queue was used last
	lastQueue   *[]*packet.Frame
	seen        *portSet        // the ports that out was last cleared for
	ready       []*switchPort   // ports with frames in out
	done        []*packet.Frame // frames to release after the batch
	copies      stock
	large       stock
	whole       []*datagram // completed datagrams, whose fragments may continue
	joiner      reassembly.Joiner

	busy    sync.Mutex // held for each round
	receive atomic.Pointer[receiveSet]
	has     *receiveSet // the receiveSet that awake was made from
	awake   []*polled   // the ports that each round receives from
	first   int         // where in awake a round begins
	served  *polled     // the port of the batch since w.now, until it is charged
	bytes   int         // of the first packets of each batch of the round

	overload       sched.Overload
	moved          bool // packets came since the last sleep
	crowded        bool // it has been behind for a window: relieve it after the round
	poller         *ports.Poller
	woken          []uint32 // ports that the poller named
	polling        sched.Polling
	hold           sched.IdleHold
	awaits         bool // it expects an answer and skips the poller: ports do not become quiet meanwhile
	counts         workerCounts
	drops          [256][telemetry.NumDropReasons]atomic.Uint64 // dropped packets by table and reason
	account        *account                                     // the account of its packets
	packetCounters batchCounters                                // of these packets, since they were last settled
	dropRing       *telemetry.DropRing                          // … and the last dropped ones
}

func newWorker(s *Switch) *worker {
	w := &worker{sw: s, out: make(map[*switchPort]*[]*packet.Frame), copies: newStock(copyFrames, copyBuffer, copiesAhead), large: newStock(largeFrames, packet.LargeBuffer, largeAhead), dropRing: telemetry.NewDropRing()}
	w.walk.w = w
	w.timer.every, w.timer.marks = timeEvery, new([mostMarks]mark)
	w.walk.rests = make([]rest, 0, maxDepth+1)
	w.receive.Store(&receiveSet{})
	return w
}

// letGo returns once the worker uses no port that was taken from it or from the switch.
func (w *worker) letGo() {
	w.busy.Lock()
	defer w.busy.Unlock()
	w.seen = nil // the next flush deletes the queues of removed ports
	w.adopt()
}

// round receives one batch from each awake port and walks it. It returns the number of packets.
func (w *worker) round() int {
	w.busy.Lock()
	defer w.busy.Unlock()
	w.adopt()
	w.choose()
	w.bytes = 0
	total, n := 0, len(w.awake)
	for i := range n {
		total += w.serve(w.awake[(w.first+i)%n])
	}
	w.first++
	if total == 0 && w.served != nil {
		w.charge(nil)
	}
	return total
}

// serve gives a port its turn. It walks frames that wait from the port's last batch, or otherwise
// receives a batch.
func (w *worker) serve(p *polled) int {
	b := &p.backlog
	if b.empty() {
		n := p.port.Receive(b.room[:p.budget])
		b.frames, b.full = b.room[:n], n == p.budget
		if n == 0 {
			if !w.awaits {
				p.quiet++
			}
			return 0
		}
	}
	p.quiet = 0
	w.charge(p)
	n := w.serveTurn(p)
	p.behind = b.full || !b.empty()
	w.counts.batches.Add(1)
	w.counts.packets.Add(uint64(n))
	return max(1, n)
}

// serveAll walks a batch of frames from a port.
func (w *worker) serveAll(p *polled, frames []*packet.Frame) {
	w.cache.warm(frames, p, w.sw.conntrack)
	before := w.cache.firsts()
	if lives := w.sw.lives.Load(); lives == nil {
		for i, f := range frames {
			if w.cache != nil {
				w.walk.near = &w.cache.warming.Near[i]
			}
			w.walk.packet(f, p.no)
		}
	} else {
		lives.serve(w, frames, p.no)
	}
	p.firsts = w.cache.firsts() - before
}

// drain makes rounds over all ports until none has frames.
func (w *worker) drain() {
	w.busy.Lock()
	w.has = nil // all are awake again
	w.busy.Unlock()
	for w.round() > 0 {
	}
	w.settle()
}

// settle flushes every port that this worker has sent to. If the kernel did not accept frames
// when they were queued, they wait in the port's ring. Possibly no later frame pushes them out.
func (w *worker) settle() {
	w.busy.Lock()
	defer w.busy.Unlock()
	w.flush()
	for p := range w.out {
		p.port.Flush()
	}
}

const (
	// quantum is how long a port's batch may take. After a longer batch, the port's next one is
	// half as long. So 64 segments of 64 kB do not delay the other ports by a millisecond.
	quantum    = 100 * time.Microsecond
	leastBatch = 8
)

// workerCounts is a worker's counters about itself.
type workerCounts struct {
	batches, packets, sleeps    atomic.Uint64
	working, spinning, sleeping atomic.Uint64 // nanoseconds
	wakes                       sched.WakeTimes
}

// charge reads the clock, and charges the time since the last batch began to that batch's port.
// The following time is p's; p is nil if nothing came.
func (w *worker) charge(p *polled) {
	now := w.sw.clock()
	if was := w.served; was != nil {
		took := max(0, now-w.now)
		was.share.Spend(took)
		w.counts.working.Add(uint64(took))
		was.chargeBatch(took)
		w.crowded = w.overload.NoteBatch(now, took, was.behind) || w.crowded
	}
	w.served, w.now = p, now
}

// chargeBatch charges a turn to its batch. The last turn of a batch sets how many
// frames the next batch may have.
func (p *polled) chargeBatch(took int64) {
	p.backlog.took += took
	if p.backlog.empty() {
		p.budget = nextBudget(p.budget, time.Duration(p.backlog.took))
		p.backlog.took = 0
	}
}

// nextBudget is how many frames a port may bring next, after a batch within a budget took a given
// time.
func nextBudget(budget int, took time.Duration) int {
	if took > quantum {
		return max(leastBatch, budget/2)
	}
	return min(batchSize, 2*budget)
}
