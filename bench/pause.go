package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
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

// longTurn is what no collection is to make of a turn.
const longTurn = time.Millisecond

func runGC(ctx context.Context, r *rig, c *Comparison) (err error) {
	program, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	asleep := agent.KeepsAwake(agent.KeepAwakeAuto)
	s, err := openTurns(program, turnOptions{connections: gcConnections, rules: gcRules, keepAwake: asleep == nil})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	window := r.Window
	if r.Rounds == 0 {
		window = max(window, time.Until(r.until)/(gcRounds*turnWindows))
	}
	c.Notes = append(c.Notes, fmt.Sprintf("%d UDP connections through the pipeline of examples/two-nodes, a packet of each in turn, ports in memory, a worker that never sleeps. "+
		"A turn is what the worker does from one batch to the next, with all that it has to wait for; the longest is that of a window of %v, which is of parts of %v. "+
		"A part is thrown away and measured again in which the host had a processor for more than %v of a millisecond, as a timer of the kernel tells that comes every %v on each, or another program took it from a thread that was not done: up to %d windows of parts, and if there is not half a window of others then, they are used and told as needed. What threads of Go's take from each other counts. "+
		"Collections are forced, %v after each other. Stop-the-world is Go's own count, by the upper bounds of its histogram, of parts thrown away, too. "+
		"With rules: another switch of the process, which has no packets, has %d rules of policies.", gcConnections, window.Round(time.Millisecond), turnPart, leastTaken, takingPeriod, mostThrown, collectEvery, gcRules))
	if asleep != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("Idle processors sleep as they like, from which stops of the collector have to wake them: %v.", asleep))
	} else {
		c.Notes = append(c.Notes, "The worker has idle processors kept awake while the collector may be at work, as an agent's does that has keepAwake: auto.")
	}
	if strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1") {
		c.Notes = append(c.Notes, "Go stops goroutines without signals, as in an agent.")
	} else {
		c.Notes = append(c.Notes, "Go stops goroutines by signals, too, which takes longer than in an agent: GODEBUG=asyncpreemptoff=1 leaves them out.")
	}
	if s.others, err = openTakings(); err != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("No part is thrown away, for the kernel does not tell who has the processors: %v.", err))
	}
	measure := func(ctx context.Context) ([]reading, error) { return s.measure(ctx, window) }
	return r.contest(ctx, c, []*side{{name: "antrail", measure: measure}})
}

// turns is a switch at work between two ports in memory.
type turns struct {
	sw     *dataplane.Switch
	ct     *conntrack.Table
	source *source
	rules  int
	others *takings // nil when it cannot be known
}

// turnOptions are what is at work there.
type turnOptions struct {
	connections uint32
	rules       int // of policies, of the other switch
	keepAwake   bool
}

func openTurns(p *flow.Program, o turnOptions) (*turns, error) {
	s := &source{Port: memory.New(sender().Name, memory.Options{}), pool: packet.NewPool(8*walkBatch, 2048), frame: there(64), of: o.connections}
	sw, ct, err := newSwitchFor(switchOptions{connections: 2 * int(o.connections), keepAwake: o.keepAwake}, p, s, &sink{memory.New(receiver().Name, memory.Options{})})
	if err != nil {
		return nil, err
	}
	return &turns{sw: sw, ct: ct, source: s, rules: o.rules}, nil
}

func (t *turns) close() error {
	err := t.sw.Close()
	if t.others != nil {
		err = errors.Join(err, t.others.close())
	}
	return err
}

// measure lets every connection begin, if it has not, and takes the time of
// turns without collections and with them.
func (t *turns) measure(ctx context.Context, window time.Duration) ([]reading, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	t.source.asked = time.Time{}
	go func() { ended <- t.sw.Run(ctx) }()
	readings, err := t.readings(ctx, window)
	cancel()
	return readings, errors.Join(err, <-ended)
}

// beginPatience is how long it may take until all connections are there, and
// until a turn ends when others have the worker's processor.
const beginPatience = time.Minute

// turnWindows is how many windows a round has.
const turnWindows = 3

func (t *turns) readings(ctx context.Context, window time.Duration) ([]reading, error) {
	for deadline := time.Now().Add(beginPatience); t.ct.Stats().Entries < int(t.source.of); wait(ctx, 10*time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("%d of %d connections after %v", t.ct.Stats().Entries, t.source.of, beginPatience), ctx.Err())
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	alone, err := t.watch(ctx, window)
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	bare, besideBare, err := t.collected(ctx, window, "")
	if err != nil {
		return nil, err
	}
	held, err := openHeld(t.rules)
	if err != nil {
		return nil, err
	}
	full, besideFull, err := t.collected(ctx, window, fmt.Sprintf(", %d rules", t.rules))
	return slices.Concat([]reading{
		{"longest turn without collections", "µs", micros(1, alone.longest)},
		{"turns over 1 ms without collections", "turns", float64(alone.long)},
		{"a packet without collections", "ns", alone.ofPacket()},
		// Thousandths: the measurement itself makes a few in all.
		{"allocations of a packet", "allocs", math.Round(1000*float64(after.Mallocs-before.Mallocs)/float64(alone.all)) / 1000},
	}, bare, full, disturbances(alone, besideBare, besideFull)), errors.Join(err, held.Close())
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
func (t *turns) collected(ctx context.Context, window time.Duration, of string) ([]reading, watched, error) {
	runtime.GC()
	before, begin := readPauses(), time.Now()
	stop, ended := make(chan struct{}), make(chan collections)
	go func() { ended <- runCollections(stop) }()
	beside, err := t.watch(ctx, window)
	took := time.Since(begin)
	close(stop)
	c := <-ended
	return []reading{
		{"longest turn with collections" + of, "µs", micros(1, beside.longest)},
		{"turns over 1 ms with collections" + of, "turns", float64(beside.long)},
		{"longest stop-the-world" + of, "µs", micros(1, readPauses().longestSince(before))},
		{"a collection" + of, "µs", micros(max(1, c.n), c.took)},
		{"collections" + of, "1/s", float64(c.n) / took.Seconds()},
		{"a packet with collections" + of, "ns", beside.ofPacket()},
	}, beside, err
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
	asked   time.Time // the last Receive; zero before the first of a round
	packets atomic.Uint64
	long    atomic.Uint64 // turns longer than longTurn
	longest atomic.Int64  // turn since it was last asked for, ns
}

// now is how far it is; the longest turn is of those that ended since it was last asked.
func (s *source) now() count {
	return count{at: time.Now(), packets: s.packets.Load(), long: s.long.Load(), longest: time.Duration(s.longest.Swap(0))}
}

// Receive makes a batch.
func (s *source) Receive(batch []*packet.Frame) int {
	now := time.Now()
	if !s.asked.IsZero() {
		s.turned(now.Sub(s.asked))
	}
	s.asked = now
	n := s.pool.Get(batch)
	for _, f := range batch[:n] {
		f.SetBytes(s.frame)
		renew(f.Bytes(), s.next)
		if s.next++; s.next == s.of {
			s.next = 0
		}
	}
	s.packets.Add(uint64(n))
	return n
}

// turned notes a turn.
func (s *source) turned(turn time.Duration) {
	if turn > longTurn {
		s.long.Add(1)
	}
	if turn > time.Duration(s.longest.Load()) {
		s.longest.Store(int64(turn))
	}
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
