package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// Profile gc: what Go's garbage collector does to a worker that is busy, with a
// million connections in the table. The collector runs more than a hundred times
// a second, an agent's once in minutes, beside a worker whose port always has
// frames of them all.

// gcConnections is how many connections there are.
const gcConnections = 1_000_000

func runGC(ctx context.Context, r *rig, c *Comparison) (err error) {
	c.Notes = append(c.Notes, fmt.Sprintf("%d UDP connections through the pipeline of examples/two-nodes, a packet of each in turn, ports in memory, a worker that never sleeps. "+
		"A turn is what the worker does from one batch to the next; the longest is also the longest time that anything else, the collector or another process, kept it from its port. "+
		"Collections are forced, 5 ms after each other. Stop-the-world is Go's own count, by the upper bounds of its histogram.", gcConnections))
	program, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	s, err := openTurns(program, gcConnections)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	measure := func(ctx context.Context) ([]reading, error) { return s.measure(ctx, r.Window) }
	return r.contest(ctx, c, []*side{{name: "antrail", measure: measure}})
}

// turns is a switch at work between two ports in memory.
type turns struct {
	sw     *dataplane.Switch
	ct     *conntrack.Table
	source *source
}

func openTurns(p *flow.Program, connections uint32) (*turns, error) {
	s := &source{Port: memory.New(sender().Name, memory.Options{}), pool: packet.NewPool(8*walkBatch, 2048), frame: there(64), of: connections}
	sw, ct, err := newSwitchFor(2*int(connections), p, s, &sink{memory.New(receiver().Name, memory.Options{})})
	if err != nil {
		return nil, err
	}
	return &turns{sw, ct, s}, nil
}

func (t *turns) close() error { return t.sw.Close() }

// measure lets every connection begin, if it has not, and takes the time of
// turns without collections and with them.
func (t *turns) measure(ctx context.Context, window time.Duration) ([]reading, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- t.sw.Run(ctx) }()
	readings, err := t.watch(ctx, window)
	cancel()
	return readings, errors.Join(err, <-ended)
}

// beginPatience is how long it may take until all connections are there.
const beginPatience = time.Minute

func (t *turns) watch(ctx context.Context, window time.Duration) ([]reading, error) {
	for deadline := time.Now().Add(beginPatience); t.ct.Stats().Entries < int(t.source.of); wait(ctx, 10*time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("%d of %d connections after %v", t.ct.Stats().Entries, t.source.of, beginPatience), ctx.Err())
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	alone := t.source.watch(ctx, window)
	runtime.ReadMemStats(&after)
	pauses := readPauses()
	stop, ended := make(chan struct{}), make(chan float64)
	go func() { ended <- runCollections(stop) }()
	beside := t.source.watch(ctx, window)
	close(stop)
	collections := <-ended
	if alone.longest == 0 || beside.longest == 0 {
		return nil, errors.Join(errors.New("the worker made no turn"), ctx.Err())
	}
	return []reading{
		{"longest turn without a collection", "µs", alone.longest.Seconds() * 1e6},
		{"longest turn with collections", "µs", beside.longest.Seconds() * 1e6},
		{"longest stop-the-world", "µs", readPauses().longestSince(pauses).Seconds() * 1e6},
		{"collections", "1/s", collections / beside.took.Seconds()},
		{"a packet without collections", "ns", float64(alone.took) / float64(alone.packets)},
		{"a packet with collections", "ns", float64(beside.took) / float64(beside.packets)},
		// Thousandths: the measurement itself makes a few in all.
		{"allocations of a packet", "allocs", math.Round(1000*float64(after.Mallocs-before.Mallocs)/float64(alone.packets)) / 1000},
	}, ctx.Err()
}

// collectEvery is the pause between two collections.
const collectEvery = 5 * time.Millisecond

// runCollections collects garbage until stop is closed, and returns how often.
func runCollections(stop <-chan struct{}) (n float64) {
	for {
		select {
		case <-stop:
			return n
		case <-time.After(collectEvery):
			runtime.GC()
			n++
		}
	}
}

// source is a port that always has frames, one of each connection in turn. It
// notes how long it takes from one Receive to the next.
type source struct {
	*memory.Port
	pool    *packet.HeapPool
	frame   []byte
	of      uint32 // connections
	next    uint32
	watched atomic.Bool
	asked   time.Time // when the last Receive was; zero before the first

	longest atomic.Int64
	packets atomic.Uint64
}

// seen is what passed while the source was watched.
type seen struct {
	longest time.Duration
	packets uint64
	took    time.Duration
}

// turnPatience is how many windows others may have the worker's processor.
const turnPatience = 50

// watch looks on for so long, and on a busy machine until there was a turn.
func (s *source) watch(ctx context.Context, window time.Duration) seen {
	s.longest.Store(0)
	s.packets.Store(0)
	begin := time.Now()
	s.watched.Store(true)
	for n := 0; n < turnPatience && s.longest.Load() == 0 && ctx.Err() == nil; n++ {
		wait(ctx, window)
	}
	s.watched.Store(false)
	return seen{time.Duration(s.longest.Load()), s.packets.Load(), time.Since(begin)}
}

// Receive makes a batch.
func (s *source) Receive(batch []*packet.Frame) int {
	s.note()
	n := s.pool.Get(batch)
	for _, f := range batch[:n] {
		f.SetBytes(s.frame)
		renew(f.Bytes(), s.next)
		if s.next++; s.next == s.of {
			s.next = 0
		}
	}
	if s.watched.Load() {
		s.packets.Add(uint64(n))
	}
	return n
}

// note takes the time of a turn. One that began before the source was watched
// does not count.
func (s *source) note() {
	if !s.watched.Load() {
		s.asked = time.Time{}
		return
	}
	now := time.Now()
	if took := int64(now.Sub(s.asked)); !s.asked.IsZero() && took > s.longest.Load() {
		s.longest.Store(took)
	}
	s.asked = now
}

// sink is a port that throws away what it is to send.
type sink struct{ *memory.Port }

// Transmit releases the frames.
func (s *sink) Transmit(batch []*packet.Frame) int {
	packet.Release(batch)
	return len(batch)
}

// pauses is Go's histogram of stop-the-world pauses.
type pauses metrics.Float64Histogram

func readPauses() *pauses {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	return (*pauses)(sample[0].Value.Float64Histogram())
}

// longestSince is a bound of the longest pause that is in p and not in before.
func (p *pauses) longestSince(before *pauses) time.Duration {
	for i := len(p.Counts) - 1; i >= 0; i-- {
		if p.Counts[i] == before.Counts[i] {
			continue
		}
		bound := p.Buckets[i+1]
		if math.IsInf(bound, 1) {
			bound = p.Buckets[i]
		}
		return time.Duration(bound * float64(time.Second))
	}
	return 0
}
