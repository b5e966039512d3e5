package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
	"golang.org/x/sys/unix"
)

// Profile gc: what Go's garbage collector does to a worker that is busy, with a
// million connections in the table. The collector runs more than a hundred times
// a second, an agent's once in minutes, beside a worker whose port always has
// frames of them all. What a collection takes depends on how many pointers there
// are: the connections have none, so that it is measured once with little else on
// the heap and once beside as many entries as an agent of a large cluster has.

const (
	// gcConnections is how many connections there are.
	gcConnections = 1_000_000
	// gcRules is how many rules of policies there are then.
	gcRules = 10_000
	// gcRounds is into how many rounds the time of the profile is divided.
	gcRounds = 10
)

func runGC(ctx context.Context, r *rig, c *Comparison) (err error) {
	program, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	s, err := openTurns(program, gcConnections, gcRules)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	window := r.Window
	if r.Rounds == 0 {
		window = max(window, time.Until(r.until)/(gcRounds*turnWindows))
	}
	c.Notes = append(c.Notes, fmt.Sprintf("%d UDP connections through the pipeline of examples/two-nodes, a packet of each in turn, ports in memory, a worker that never sleeps. "+
		"A turn is what the worker does from one batch to the next; the longest is that of a window of %v. What of a turn the worker did not run itself, it waited for a processor that other threads had, or Go's scheduler kept it, which is said of all of a turn that ends on another thread. "+
		"Collections are forced, %v after each other. Stop-the-world is Go's own count, by the upper bounds of its histogram. "+
		"With rules: another switch of the process, which has no packets, has %d rules of policies.", gcConnections, window.Round(time.Millisecond), collectEvery, gcRules))
	measure := func(ctx context.Context) ([]reading, error) { return s.measure(ctx, window) }
	return r.contest(ctx, c, []*side{{name: "antrail", measure: measure}})
}

// turns is a switch at work between two ports in memory.
type turns struct {
	sw     *dataplane.Switch
	ct     *conntrack.Table
	source *source
	rules  int
}

func openTurns(p *flow.Program, connections uint32, rules int) (*turns, error) {
	s := &source{Port: memory.New(sender().Name, memory.Options{}), pool: packet.NewPool(8*walkBatch, 2048), frame: there(64), of: connections}
	sw, ct, err := newSwitchFor(switchOptions{connections: 2 * int(connections)}, p, s, &sink{memory.New(receiver().Name, memory.Options{})})
	if err != nil {
		return nil, err
	}
	return &turns{sw, ct, s, rules}, nil
}

func (t *turns) close() error { return errors.Join(t.sw.Close(), t.source.stop()) }

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

// beginPatience is how long it may take until all connections are there, and
// until there is a turn when others have the worker's processor.
const beginPatience = time.Minute

// turnWindows is how many windows a round has.
const turnWindows = 3

func (t *turns) watch(ctx context.Context, window time.Duration) ([]reading, error) {
	for deadline := time.Now().Add(beginPatience); t.ct.Stats().Entries < int(t.source.of); wait(ctx, 10*time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("%d of %d connections after %v", t.ct.Stats().Entries, t.source.of, beginPatience), ctx.Err())
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	alone, err := t.source.watch(ctx, window)
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	readings := []reading{
		{"longest turn without a collection", "µs", micros(1, alone.worst.took)},
		{"a packet without collections", "ns", float64(alone.took) / float64(alone.packets)},
		// Thousandths: the measurement itself makes a few in all.
		{"allocations of a packet", "allocs", math.Round(1000*float64(after.Mallocs-before.Mallocs)/float64(alone.packets)) / 1000},
	}
	bare, err := t.collected(ctx, window, "")
	if err != nil {
		return nil, err
	}
	held, err := openHeld(t.rules)
	if err != nil {
		return nil, err
	}
	full, err := t.collected(ctx, window, fmt.Sprintf(", %d rules", t.rules))
	return slices.Concat(readings, bare, full), errors.Join(err, held.Close())
}

// openHeld makes a switch that has rules of policies and nothing to do.
func openHeld(rules int) (*dataplane.Switch, error) {
	program, err := policyProgram(rules)
	if err != nil {
		return nil, err
	}
	idle := func(name string) ports.Port { return memory.New(name, memory.Options{}) }
	sw, _, err := newSwitchFor(switchOptions{connections: 1}, program, idle(sender().Name), idle(receiver().Name))
	return sw, err
}

// collected watches the worker beside collections; of is what each name ends with.
func (t *turns) collected(ctx context.Context, window time.Duration, of string) ([]reading, error) {
	runtime.GC()
	before := readPauses()
	stop, ended := make(chan struct{}), make(chan collections)
	go func() { ended <- runCollections(stop) }()
	beside, err := t.source.watch(ctx, window)
	close(stop)
	c := <-ended
	return []reading{
		{"longest that Go kept the worker" + of, "µs", micros(1, beside.worst.kept)},
		{"longest turn with collections" + of, "µs", micros(1, beside.worst.took)},
		{"of it Go kept the worker" + of, "µs", micros(1, beside.worst.turn.kept())},
		{"of it the worker waited for a processor" + of, "µs", micros(1, beside.worst.waited)},
		{"longest stop-the-world" + of, "µs", micros(1, readPauses().longestSince(before))},
		{"a collection" + of, "µs", micros(max(1, c.n), c.took)},
		{"collections" + of, "1/s", float64(c.n) / beside.took.Seconds()},
		{"a packet with collections" + of, "ns", float64(beside.took) / float64(beside.packets)},
	}, err
}

// collectEvery is the pause between two collections.
const collectEvery = 5 * time.Millisecond

// collections is how many there were, and how long they took together.
type collections struct {
	n    int
	took time.Duration
}

// runCollections collects garbage until stop is closed.
func runCollections(stop <-chan struct{}) (c collections) {
	for {
		select {
		case <-stop:
			return c
		case <-time.After(collectEvery):
			begin := time.Now()
			runtime.GC()
			c.took += time.Since(begin)
			c.n++
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
	clock   *threadClock // of the worker's thread, as it was last; nil before it was watched
	asked   moment       // the last Receive; zero before the first that was watched
	packets atomic.Uint64

	mu    sync.Mutex
	worst worst
	err   error
}

// moment is a time, the worker's thread, and the time of that until then.
type moment struct {
	at     time.Time
	thread int
	threadTime
}

// turn is from one Receive to the next.
type turn struct {
	took time.Duration
	threadTime
}

// kept is how long Go's scheduler kept the worker.
func (t *turn) kept() time.Duration { return max(0, t.took-t.ran-t.waited) }

// worst is of some turns the longest, and the longest that Go kept the worker in any.
type worst struct {
	turn
	kept time.Duration
}

// seen is what passed while the source was watched.
type seen struct {
	worst   worst
	packets uint64
	took    time.Duration
}

// watch looks on for so long, and on a busy machine until there was a turn.
func (s *source) watch(ctx context.Context, window time.Duration) (seen, error) {
	s.packets.Store(0)
	s.taken() // what is left of another window
	begin := time.Now()
	s.watched.Store(true)
	wait(ctx, window)
	worst, err := s.taken()
	for ; worst.took == 0 && err == nil && ctx.Err() == nil && time.Since(begin) < beginPatience; wait(ctx, 10*time.Millisecond) {
		worst, err = s.taken()
	}
	s.watched.Store(false)
	if worst.took == 0 {
		err = errors.Join(errors.New("the worker made no turn"), err)
	}
	return seen{worst, s.packets.Load(), time.Since(begin)}, errors.Join(err, ctx.Err())
}

// taken is the worst of the turns since it was last called.
func (s *source) taken() (w worst, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err = s.worst, s.err
	s.worst = worst{}
	return w, err
}

// stop closes what a source has open that nobody receives from any more.
func (s *source) stop() error {
	if s.clock == nil {
		return nil
	}
	return s.clock.close()
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
		s.asked = moment{}
		return
	}
	first := s.asked.at.IsZero()
	now, err := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = err
	} else if !first {
		t := turn{took: now.at.Sub(s.asked.at)}
		if now.thread == s.asked.thread {
			t.threadTime = threadTime{now.ran - s.asked.ran, now.waited - s.asked.waited}
		}
		if t.took > s.worst.took {
			s.worst.turn = t
		}
		s.worst.kept = max(s.worst.kept, t.kept())
	}
	s.asked = now
}

// now is this moment. The worker's thread may be another one than before, but not
// while it is asked.
func (s *source) now() (m moment, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if m.thread = unix.Gettid(); m.thread != s.asked.thread {
		err = s.stop()
		if s.clock = nil; err == nil {
			s.clock, err = openThreadClock()
		}
	}
	if err == nil && s.clock != nil {
		m.threadTime, err = s.clock.read()
	}
	m.at = time.Now()
	return m, err
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
