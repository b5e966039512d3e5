package bench

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// walker is antrail's switch with ports in memory: a pipeline without any
// driver.
type walker struct {
	sw           *dataplane.Switch
	ct           *conntrack.Table
	in, out      *memory.Port
	pool         *packet.HeapPool
	batch, taken []*packet.Frame
	frame        []byte
	next         uint32 // number of the next new connection
}

// walkBatch is what a loaded worker has at a time.
const walkBatch = 64

// newWalker makes a switch with a program. When it tracks connections, the
// known one is established.
func newWalker(p *flow.Program, tracks bool) (*walker, error) {
	w := &walker{
		in: memory.New(sender().Name, memory.Options{}), out: memory.New(receiver().Name, memory.Options{}),
		pool: packet.NewPool(4*walkBatch, 2048), batch: make([]*packet.Frame, walkBatch), taken: make([]*packet.Frame, walkBatch), frame: there(64),
	}
	var err error
	if w.sw, w.ct, err = newSwitch(p, w.in, w.out); err != nil {
		return nil, err
	}
	if tracks {
		err = errors.Join(w.one(w.in, w.out, there(64)), w.one(w.out, w.in, back(64)))
	}
	if err := errors.Join(err, w.one(w.in, w.out, there(64))); err != nil {
		return nil, errors.Join(err, w.sw.Close())
	}
	return w, nil
}

// one sends one frame, which must arrive.
func (w *walker) one(from, to *memory.Port, frame []byte) error {
	if err := from.Send(frame); err != nil {
		return err
	}
	w.sw.Poll()
	n := to.Collect(w.taken)
	packet.Release(w.taken[:n])
	if n != 1 {
		return fmt.Errorf("%d frames came from %s to %s, want 1", n, from.Name(), to.Name())
	}
	return nil
}

// pass sends a batch of the known connection, or of as many new ones.
func (w *walker) pass(fresh bool) error {
	w.pool.Get(w.batch)
	for _, f := range w.batch {
		f.SetBytes(w.frame)
		if fresh {
			renew(f.Bytes(), w.next)
			w.next++
		}
	}
	w.in.Inject(w.batch...)
	w.sw.Poll()
	n := w.out.Collect(w.taken)
	packet.Release(w.taken[:n])
	if n != walkBatch {
		return fmt.Errorf("%d of %d frames arrived", n, walkBatch)
	}
	return nil
}

// walked is the cost of a packet.
type walked struct {
	nanoseconds, allocations, entries float64
}

// mostFresh is how many new connections a measurement makes; they are forgotten
// afterwards.
const mostFresh = 100_000

// measure sends packets for so long.
func (w *walker) measure(window time.Duration, fresh bool) (c walked, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	runtime.GC()
	var before, after runtime.MemStats
	taken := w.entriesTaken()
	runtime.ReadMemStats(&before)
	packets, start := 0, time.Now()
	for time.Since(start) < window && !(fresh && packets >= mostFresh) {
		if err := w.pass(fresh); err != nil {
			return c, err
		}
		packets += walkBatch
	}
	c.nanoseconds = float64(time.Since(start)) / float64(packets)
	runtime.ReadMemStats(&after)
	c.allocations = float64(after.Mallocs-before.Mallocs) / float64(packets)
	c.entries = float64(w.entriesTaken()-taken) / float64(packets)
	return c, w.forget(fresh)
}

// forget drops the new connections and makes the known one known again.
func (w *walker) forget(fresh bool) error {
	if !fresh {
		return nil
	}
	w.ct.Flush()
	return errors.Join(w.one(w.in, w.out, there(64)), w.one(w.out, w.in, back(64)))
}

// entriesTaken is how often entries were taken.
func (w *walker) entriesTaken() (n uint64) {
	for _, f := range w.sw.Flows() {
		n += f.Packets
	}
	return n
}
