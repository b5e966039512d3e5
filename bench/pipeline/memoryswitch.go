package pipeline

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
	"golang.org/x/sys/unix"
)

// memorySwitch is antrail's switch with ports in memory: a pipeline without a driver.
type memorySwitch struct {
	sw               *dataplane.Switch
	ct               *conntrack.Table
	in, out          *memory.Port
	pool             *packet.HeapPool
	batch, collected []*packet.Frame
	next             uint32 // number of the next packet
	// countEntries says that samples tell how many entries a packet takes. That is slow with many
	// entries.
	countEntries bool
	// timeTables says that samples tell what each table costs.
	timeTables bool
	// onBegin and onBatch, unless they are nil, are called when a sample begins and after each of its
	// batches.
	onBegin, onBatch func() error
}

// batchSize is how many frames a loaded worker has at a time.
const batchSize = 64

// newMemorySwitch makes a switch with a program. Its owner closes sw.
func newMemorySwitch(p *flow.Program, o testbed.SwitchOptions) (*memorySwitch, error) {
	w := &memorySwitch{
		in: memory.New(testbed.Sender().Name, memory.Options{}), out: memory.New(testbed.Receiver().Name, memory.Options{}),
		pool: packet.NewPool(4*batchSize, 2048), batch: make([]*packet.Frame, batchSize), collected: make([]*packet.Frame, batchSize),
	}
	var err error
	w.sw, w.ct, err = testbed.NewSwitch(o, p, w.in, w.out)
	return w, err
}

// sendFrame sends one frame, and releases what leaves by either port.
func (w *memorySwitch) sendFrame(from *memory.Port, frame []byte) error {
	if err := from.Send(frame); err != nil {
		return err
	}
	w.sw.Poll()
	for _, p := range []*memory.Port{w.in, w.out} {
		packet.Release(w.collected[:p.Collect(w.collected)])
	}
	return nil
}

// portOf is the port at which packets arrive.
func (w *memorySwitch) portOf(c *workload.Packets) *memory.Port {
	if c.Hairpin {
		return w.out
	}
	return w.in
}

// makeKnown makes the connections of packets known: it sends a packet of each, and its answers.
func (w *memorySwitch) makeKnown(c *workload.Packets) error {
	frame, answer := make([]byte, len(c.Frame)), make([]byte, len(c.Frame))
	for n := range c.Connections {
		copy(frame, c.Frame)
		c.Change.Apply(frame, n)
		if err := w.sendFrame(w.portOf(c), frame); err != nil {
			return err
		}
		for _, a := range c.Answers {
			copy(answer, a)
			c.AnswerChange.Apply(answer, n)
			if err := w.sendFrame(w.out, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendBatch sends a batch of packets. All must leave by the receiver's port.
func (w *memorySwitch) sendBatch(c *workload.Packets) error {
	w.pool.Get(w.batch)
	for _, f := range w.batch {
		f.SetBytes(c.Frame)
		c.Change.Apply(f.Bytes(), w.next)
		if w.next++; w.next == c.Connections {
			w.next = 0
		}
	}
	w.portOf(c).Inject(w.batch...)
	w.sw.Poll()
	n := w.out.Collect(w.collected)
	packet.Release(w.collected[:n])
	if n != batchSize {
		return fmt.Errorf("%d of %d frames arrived", n, batchSize)
	}
	return nil
}

// mostNew is how many new connections a sample makes at most. They are removed before the next one.
const mostNew = 50_000

// takeSample sends packets for so long. Before that it sends one of each known connection.
func (w *memorySwitch) takeSample(c *workload.Packets, long time.Duration) (sample, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.next = 0
	for n := uint32(0); n < c.Connections; n += batchSize { // so that caches know the connections
		if err := w.sendBatch(c); err != nil {
			return sample{}, err
		}
	}
	var before, after runtime.MemStats
	taken, tables := w.countEntriesTaken(), w.readTables()
	watch, err := sched.WatchThread("self", unix.Gettid())
	if err != nil {
		return sample{}, err
	}
	runtime.ReadMemStats(&before)
	packets, took, err := w.sendFor(c, long)
	runtime.ReadMemStats(&after)
	disturbed, err2 := watch.DisturbedPart()
	if began := w.ct.Stats().Entries / c.EntriesPerConnection(); c.Connections == 0 && began < packets {
		return sample{}, fmt.Errorf("%s: %d packets began %d connections", c.Name, packets, began)
	}
	return sample{
		packets:     float64(packets),
		nanoseconds: float64(took) / float64(packets),
		allocations: float64(after.Mallocs-before.Mallocs) / float64(packets),
		entries:     float64(w.countEntriesTaken()-taken) / float64(packets),
		tables:      new(tableTimesOf(tables, w.readTables(), packets)),
		disturbed:   disturbed,
	}, errors.Join(err, err2)
}

// sendFor sends packets for so long, or until there are mostNew connections. It returns how many packets,
// and how long that took.
func (w *memorySwitch) sendFor(c *workload.Packets, long time.Duration) (packets int, took time.Duration, err error) {
	start := time.Now()
	if w.onBegin != nil {
		err = w.onBegin()
	}
	for err == nil && time.Since(start) < long && !(c.Connections == 0 && packets >= mostNew) {
		if err = w.sendBatch(c); err == nil && w.onBatch != nil {
			err = w.onBatch()
		}
		packets += batchSize
	}
	return packets, time.Since(start), err
}

// countEntriesTaken adds up the packet counters of all entries; 0 unless countEntries.
func (w *memorySwitch) countEntriesTaken() (n uint64) {
	if !w.countEntries {
		return 0
	}
	for _, f := range w.sw.Flows() {
		n += f.Packets
	}
	return n
}

// readTables reads the tables' counters; nil unless timeTables.
func (w *memorySwitch) readTables() []telemetry.TableStats {
	if !w.timeTables {
		return nil
	}
	return w.sw.Tables()
}
