package gc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/memory"
)

// turns measures the turns of a switch's worker between two ports in memory. A turn is what the worker
// does from one batch to the next.
type turns struct {
	sw     *dataplane.Switch
	ct     *conntrack.Table
	source *source
	rules  int                 // of policies, of the other switch
	steal  *sched.StealMonitor // nil if the kernel does not tell steal time
}

// turnOptions are the sizes of a measurement.
type turnOptions struct {
	connections uint32
	rules       int // of policies, of the other switch
	keepAwake   bool
}

// openTurns makes a switch with a program. It does not run yet.
func openTurns(p *flow.Program, o turnOptions) (*turns, error) {
	s := &source{Port: memory.New(testbed.Sender().Name, memory.Options{}), pool: packet.NewPool(sourcePool, 2048), frame: testbed.KnownFrame(64), connections: o.connections}
	sw, ct, err := testbed.NewSwitch(testbed.SwitchOptions{Connections: 2 * int(o.connections), KeepAwake: o.keepAwake}, p, s, &sink{memory.New(testbed.Receiver().Name, memory.Options{})})
	if err != nil {
		return nil, err
	}
	return &turns{sw: sw, ct: ct, source: s, rules: o.rules}, nil
}

// close closes the switch and the steal monitor.
func (t *turns) close() error {
	err := t.sw.Close()
	if t.steal != nil {
		err = errors.Join(err, t.steal.Close())
	}
	return err
}

// measure runs the worker and measures its turns.
func (t *turns) measure(ctx context.Context, window time.Duration) ([]rig.Reading, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	t.source.lastReceive = time.Time{}
	go func() { ended <- t.sw.Run(ctx) }()
	readings, err := t.measureTurns(ctx, window)
	cancel()
	return readings, errors.Join(err, <-ended)
}

// beginTimeout is how long all connections may take to begin, and a turn to end on a busy machine.
const beginTimeout = time.Minute

// turnWindows is how many windows a round has.
const turnWindows = 3

// measureTurns waits until all connections have begun. Then it measures turns without collections, with
// them, and with them beside a switch that has rules of policies.
func (t *turns) measureTurns(ctx context.Context, window time.Duration) ([]rig.Reading, error) {
	for deadline := time.Now().Add(beginTimeout); t.ct.Stats().Entries < int(t.source.connections); sched.Wait(ctx, 10*time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("%d of %d connections after %v", t.ct.Stats().Entries, t.source.connections, beginTimeout), ctx.Err())
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	alone, err := t.watchWindow(ctx, window)
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	bare, besideBare, err := t.watchCollections(ctx, window, "")
	if err != nil {
		return nil, err
	}
	other, err := openRulesSwitch(t.rules)
	if err != nil {
		return nil, err
	}
	full, besideFull, err := t.watchCollections(ctx, window, fmt.Sprintf(", %d rules", t.rules))
	return slices.Concat([]rig.Reading{
		{Name: "longest turn without collections", Unit: "µs", Value: microseconds(alone.longest)},
		{Name: "turns over 1 ms without collections", Unit: "turns", Value: float64(alone.long)},
		{Name: "a packet without collections", Unit: "ns", Value: alone.timePerPacket()},
		// Rounded to thousandths, since the measurement itself makes a few.
		{Name: "allocations of a packet", Unit: "allocs", Value: math.Round(1000*float64(after.Mallocs-before.Mallocs)/float64(alone.all)) / 1000},
	}, bare, full, disturbedReadings(alone, besideBare, besideFull)), errors.Join(err, other.Close())
}

// microseconds is a time in µs.
func microseconds(d time.Duration) float64 { return float64(d) / 1e3 }

// openRulesSwitch makes a switch that has rules of policies and nothing to do.
func openRulesSwitch(rules int) (*dataplane.Switch, error) {
	program, err := workload.PolicyProgram(rules)
	if err != nil {
		return nil, err
	}
	idle := func(name string) ports.Port { return memory.New(name, memory.Options{}) }
	sw, _, err := testbed.NewSwitch(testbed.SwitchOptions{Connections: 1}, program, idle(testbed.Sender().Name), idle(testbed.Receiver().Name))
	return sw, err
}

// watchCollections watches the worker beside collections. Names of readings end with of.
func (t *turns) watchCollections(ctx context.Context, window time.Duration, of string) ([]rig.Reading, windowTotals, error) {
	runtime.GC()
	before, begin := readPauses(), time.Now()
	stop, ended := make(chan struct{}), make(chan collections)
	go func() { ended <- runCollections(stop) }()
	beside, err := t.watchWindow(ctx, window)
	took := time.Since(begin)
	close(stop)
	c := <-ended
	return []rig.Reading{
		{Name: "longest turn with collections" + of, Unit: "µs", Value: microseconds(beside.longest)},
		{Name: "turns over 1 ms with collections" + of, Unit: "turns", Value: float64(beside.long)},
		{Name: "longest stop-the-world" + of, Unit: "µs", Value: microseconds(readPauses().longestSince(before))},
		{Name: "a collection" + of, Unit: "µs", Value: microseconds(c.took) / float64(max(1, c.n))},
		{Name: "collections" + of, Unit: "1/s", Value: float64(c.n) / took.Seconds()},
		{Name: "a packet with collections" + of, Unit: "ns", Value: beside.timePerPacket()},
	}, beside, err
}
