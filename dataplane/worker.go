package dataplane

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

const (
	batchSize = 64
	// idleRounds is how many empty rounds a worker makes before it sleeps in
	// poll(2): long enough to catch an answer under way, short enough that an
	// idle switch uses next to no CPU.
	idleRounds = 64
	// sleep bounds one poll(2), so that timeouts are looked at.
	sleep = time.Second
)

// worker moves packets: it receives from its ports, walks each packet and
// queues what comes out. Everything here belongs to one goroutine, but for the
// counters.
type worker struct {
	sw      *Switch
	now     int64 // clock of this batch, nanoseconds
	walk    walk
	scratch lookupScratch
	tally   tally
	rx      [batchSize]*packet.Frame
	out     map[*switchPort]*[]*packet.Frame
	seen    *portSet         // the ports that out was last cleared for
	ready   []*switchPort    // ports with frames in out
	done    []*packet.Frame  // frames to release after the batch
	copies  *packet.HeapPool // frames for copies and segments
	large   *packet.HeapPool // frames for copies of what does not fit there
	copied  [1]*packet.Frame // the copy under way: here, it needs no heap
	whole   []*datagram      // fragments that may go on
	joiner  conntrack.Joiner

	receive atomic.Pointer[[]*switchPort] // the ports this worker polls
	poller  *ports.Poller
	sleeps  atomic.Uint64
	drops   [256][numDropReasons]atomic.Uint64 // lost packets by table and reason

	busy    sync.Mutex // held for each round
	asleep  sync.Mutex // held while in poll(2)
	waiting []ports.Port
}

func newWorker(s *Switch) *worker {
	w := &worker{sw: s, out: make(map[*switchPort]*[]*packet.Frame), copies: packet.NewPool(1024, copyBuffer), large: packet.NewPool(64, packet.LargeBuffer)}
	w.walk.w = w
	w.walk.rests = make([]rest, 0, maxDepth+1)
	w.receive.Store(new([]*switchPort))
	return w
}

// runWorker is the worker's goroutine: rounds over its ports, and sleep when
// nothing comes.
func (w *worker) runWorker(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	idle := 0
	for ctx.Err() == nil {
		if w.round() > 0 {
			idle = 0
			continue
		}
		if idle++; idle < idleRounds {
			continue
		}
		if err := w.wait(); err != nil {
			return err
		}
	}
	return nil
}

// wait sleeps until a port has frames.
func (w *worker) wait() error {
	w.asleep.Lock()
	defer w.asleep.Unlock()
	w.waiting = w.waiting[:0]
	for _, p := range *w.receive.Load() {
		w.waiting = append(w.waiting, p.port)
	}
	w.sleeps.Add(1)
	return w.poller.Wait(w.waiting, sleep)
}

// letGo returns once the worker uses no port that the published ports lack:
// neither in a round nor in poll(2), where a descriptor would stay open
// although its port is closed.
func (w *worker) letGo() {
	w.busy.Lock() // until the end: a worker that wakes must not fall asleep again before its turn here
	defer w.busy.Unlock()
	w.seen = nil // queues of ports that are gone go with the next flush
	if w.poller != nil {
		w.poller.Wake()
	}
	w.asleep.Lock()
	defer w.asleep.Unlock()
	clear(w.waiting)
}

// round receives one batch from each port and walks it. It returns the number
// of packets.
func (w *worker) round() int {
	w.busy.Lock()
	defer w.busy.Unlock()
	total := 0
	for _, p := range *w.receive.Load() {
		n := p.port.Receive(w.rx[:])
		if n == 0 {
			continue
		}
		total += n
		w.now = w.sw.clock()
		for _, f := range w.rx[:n] {
			w.walk.packet(f, p.no)
		}
		w.flush()
	}
	if total == 0 {
		w.settle()
	}
	return total
}

// settle flushes every port that this worker has sent to: what a kernel could
// not take when it was queued waits in the port's ring, and nothing may follow
// that would push it out.
func (w *worker) settle() {
	w.flush()
	for p := range w.out {
		p.port.Flush()
	}
}

// queue sends a frame, which belongs to the port from here on. Work that its
// sender left undone is done first when the port does not pass it on.
func (w *worker) queue(p *switchPort, f *packet.Frame) {
	if p.carries.All(f) {
		w.enqueue(p, f)
	} else {
		w.complete(p, f)
	}
}

// enqueue puts a frame behind the others of this batch.
func (w *worker) enqueue(p *switchPort, f *packet.Frame) {
	q := w.out[p]
	if q == nil {
		q = new([]*packet.Frame)
		w.out[p] = q
	}
	if len(*q) == 0 {
		w.ready = append(w.ready, p)
	}
	*q = append(*q, f)
}

// transmit hands the ports what is queued.
func (w *worker) transmit() {
	for _, p := range w.ready {
		q := w.out[p]
		p.port.Transmit(*q)
		p.port.Flush()
		clear(*q)
		*q = (*q)[:0]
	}
	w.ready = w.ready[:0]
}

// flush tells what the batch counted, transmits what it queued and gives the
// rest back.
func (w *worker) flush() {
	w.tally.tell(w.now)
	w.transmit()
	if set := w.sw.ports.Load(); set != w.seen {
		w.seen = set
		maps.DeleteFunc(w.out, func(p *switchPort, _ *[]*packet.Frame) bool { return set.byNumber[p.no] != p })
	}
	packet.Release(w.done)
	clear(w.done)
	w.done = w.done[:0]
}

// release gives a frame back with the others of this batch.
func (w *worker) release(f *packet.Frame) { w.done = append(w.done, f) }

// copyFrame makes a copy of a frame; nil when no free frame is left.
func (w *worker) copyFrame(f *packet.Frame) *packet.Frame {
	c := w.frameFor(f.Len())
	if c == nil {
		return nil
	}
	if !c.CopyFrom(f) {
		w.release(c)
		return nil
	}
	return c
}

// copyBuffer is the bytes of a buffer for copies and segments: an MTU of 3,900.
const copyBuffer = 4096

// frameFor is a free frame for n bytes; nil when none is left.
func (w *worker) frameFor(n int) *packet.Frame {
	pool := w.copies
	if packet.Headroom+n > copyBuffer {
		pool = w.large
	}
	one := w.copied[:]
	if pool.Get(one) == 0 {
		return nil
	}
	return one[0]
}

// countDrop counts a lost packet under the table where its walk ended.
func (w *worker) countDrop(table uint8, r DropReason) { w.drops[table][r].Add(1) }
