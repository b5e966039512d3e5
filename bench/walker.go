package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
	"golang.org/x/sys/unix"
)

// walker is antrail's switch with ports in memory: a pipeline without any
// driver.
type walker struct {
	sw           *dataplane.Switch
	ct           *conntrack.Table
	in, out      *memory.Port
	pool         *packet.HeapPool
	batch, taken []*packet.Frame
	next         uint32 // number of the next packet of a course
	counts       bool   // costs tell how many entries a packet takes; that is slow with many
	tables       bool   // … and what each table costs it
	// began and passed, when not nil, are called when a window begins and after each
	// of its batches.
	began, passed func() error
}

// walkBatch is what a loaded worker has at a time.
const walkBatch = 64

// newWalker makes a switch with a program.
func newWalker(p *flow.Program, o switchOptions) (*walker, error) {
	w := &walker{
		in: memory.New(sender().Name, memory.Options{}), out: memory.New(receiver().Name, memory.Options{}),
		pool: packet.NewPool(4*walkBatch, 2048), batch: make([]*packet.Frame, walkBatch), taken: make([]*packet.Frame, walkBatch),
	}
	var err error
	w.sw, w.ct, err = newSwitchFor(o, p, w.in, w.out)
	return w, err
}

// send sends one frame; who gets it is another matter.
func (w *walker) send(from *memory.Port, frame []byte) error {
	if err := from.Send(frame); err != nil {
		return err
	}
	w.sw.Poll()
	for _, p := range []*memory.Port{w.in, w.out} {
		packet.Release(w.taken[:p.Collect(w.taken)])
	}
	return nil
}

// from is the port by which the packets of a course come.
func (w *walker) from(c *course) *memory.Port {
	if c.hairpin {
		return w.out
	}
	return w.in
}

// know makes the connections of a course known: to each a packet and what
// answers it.
func (w *walker) know(c *course) error {
	frame, answer := make([]byte, len(c.frame)), make([]byte, len(c.frame))
	for n := range c.of {
		copy(frame, c.frame)
		c.change.apply(frame, n)
		if err := w.send(w.from(c), frame); err != nil {
			return err
		}
		for _, a := range c.answers {
			copy(answer, a)
			c.answer.apply(answer, n)
			if err := w.send(w.out, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass sends a batch of a course.
func (w *walker) pass(c *course) error {
	w.pool.Get(w.batch)
	for _, f := range w.batch {
		f.SetBytes(c.frame)
		c.change.apply(f.Bytes(), w.next)
		if w.next++; w.next == c.of {
			w.next = 0
		}
	}
	w.from(c).Inject(w.batch...)
	w.sw.Poll()
	n := w.out.Collect(w.taken)
	packet.Release(w.taken[:n])
	if n != walkBatch {
		return fmt.Errorf("%d of %d frames arrived", n, walkBatch)
	}
	return nil
}

// mostFresh is how many new connections a window makes; they are forgotten
// before the next one.
const mostFresh = 50_000

// measure sends packets of a course for so long, and at least once all that are
// known before that.
func (w *walker) measure(c *course, long time.Duration) (cost, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.next = 0
	for n := uint32(0); n < c.of; n += walkBatch { // so that caches know the connections
		if err := w.pass(c); err != nil {
			return cost{}, err
		}
	}
	var before, after runtime.MemStats
	taken, tables := w.entriesTaken(), w.tableStats()
	watch, err := watchThread("self", unix.Gettid())
	if err != nil {
		return cost{}, err
	}
	runtime.ReadMemStats(&before)
	packets, took, err := w.passFor(c, long)
	runtime.ReadMemStats(&after)
	disturbed, err2 := watch.part()
	if began := w.ct.Stats().Entries / c.tracked(); c.of == 0 && began < packets {
		return cost{}, fmt.Errorf("%s: %d packets began %d connections", c.name, packets, began)
	}
	return cost{
		packets:     float64(packets),
		nanoseconds: float64(took) / float64(packets),
		allocations: float64(after.Mallocs-before.Mallocs) / float64(packets),
		entries:     float64(w.entriesTaken()-taken) / float64(packets),
		tables:      new(tableCosts(tables, w.tableStats(), packets)),
		disturbed:   disturbed,
	}, errors.Join(err, err2)
}

// passFor sends packets of a course for so long, or until there are enough new
// connections, and tells how many, and how long it took.
func (w *walker) passFor(c *course, long time.Duration) (packets int, took time.Duration, err error) {
	start := time.Now()
	if w.began != nil {
		err = w.began()
	}
	for err == nil && time.Since(start) < long && !(c.of == 0 && packets >= mostFresh) {
		if err = w.pass(c); err == nil && w.passed != nil {
			err = w.passed()
		}
		packets += walkBatch
	}
	return packets, time.Since(start), err
}

// entriesTaken is how often entries were taken; 0 when that does not count.
func (w *walker) entriesTaken() (n uint64) {
	if !w.counts {
		return 0
	}
	for _, f := range w.sw.Flows() {
		n += f.Packets
	}
	return n
}

// tableStats are the tables' counters; nil when they are not asked for.
func (w *walker) tableStats() []dataplane.TableStats {
	if !w.tables {
		return nil
	}
	return w.sw.Tables()
}

// walk is antrail as a contender: a switch with the program, and one with a
// single entry.
type walk struct{ program, single *walker }

func newWalk(p *flow.Program, o switchOptions) (*walk, error) {
	bare, err := bareProgram()
	if err != nil {
		return nil, err
	}
	w := new(walk)
	if w.single, err = newWalker(bare, o); err != nil {
		return nil, err
	}
	if w.program, err = newWalker(p, o); err != nil {
		return nil, errors.Join(err, w.single.sw.Close())
	}
	return w, nil
}

func (w *walk) close() error { return errors.Join(w.single.sw.Close(), w.program.sw.Close()) }

func (w *walk) prime(_ context.Context, courses []*course) error {
	w.program.ct.Flush()
	runtime.GC() // windows make nothing to collect
	for _, c := range courses {
		if err := w.program.know(c); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) window(_ context.Context, c *course, base bool, long time.Duration) (cost, error) {
	if base {
		return w.single.measure(&course{frame: c.frame, of: 1}, long)
	}
	if c.of == 0 {
		w.program.ct.Flush() // what is known, and the new ones of a window before
	}
	return w.program.measure(c, long)
}
