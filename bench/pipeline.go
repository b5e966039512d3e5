package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/vishvananda/netns"
)

// Profiles pipeline and policy: what the pipeline costs, without what moves the
// frames. Each contender's cost of the same packets with a single entry that
// forwards them is taken off.

const pipelineNote = "Packets from db-a to client-a on the pipeline of examples/two-nodes: of a known UDP connection, and each the first of a new one. " +
	"\"Pipeline alone\" is less the cost of the same packets with a single entry that outputs them. " +
	"antrail: ports in memory, batches of 64, one thread, wall time. " +
	"Open vSwitch: userspace datapath, AF_XDP ports, the polling thread's own count of cycles per packet, as time by the rate at which it counts. Sending a frame into a veth costs it several times what the pipeline does, so on a busy machine its difference may come out too low, even below 0."

// bareProgram is a single entry that forwards.
func bareProgram() (*flow.Program, error) {
	text := fmt.Sprintf("table=0,in_port=%d actions=output:%d", sender().OFPort, receiver().OFPort)
	return flow.ParseProgram(flow.Sources{Flows: flow.Text("one entry", text)})
}

func runPipeline(ctx context.Context, r *rig, c *Comparison) error {
	program, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		return err
	}
	return r.contestProgram(ctx, c, 0, program)
}

// contestProgram measures a program on antrail's switch and on Open vSwitch's.
func (r *rig) contestProgram(ctx context.Context, c *Comparison, x float64, p *flow.Program) (err error) {
	var sides []*side
	defer func() { err = errors.Join(err, closeAll(sides)) }()
	if why := ovsMissing(); why == nil {
		s, err := openOVSWalk(ctx, p, r.Window)
		if err != nil {
			return fmt.Errorf("%s: %w", ovsVersion(), err)
		}
		sides = append(sides, s)
	} else if len(c.Sides) == 0 {
		c.Notes = append(c.Notes, missingError{"Open vSwitch", why}.Error())
	}
	s, err := openWalk(p, r.Window, x == 0)
	if err != nil {
		return fmt.Errorf("antrail: %w", err)
	}
	sides = append(sides, s)
	if len(c.Sides) == 0 {
		c.Notes = append(c.Notes, pipelineNote)
	}
	return r.contest(ctx, c, x, sides)
}

// The figures that both contenders have.
const (
	knownAlone = "known connection, pipeline alone"
	freshAlone = "new connection, pipeline alone"
)

// openWalk is antrail's side; in full it tells more than what both have.
func openWalk(p *flow.Program, window time.Duration, full bool) (*side, error) {
	bare, err := bareProgram()
	if err != nil {
		return nil, err
	}
	base, err := newWalker(bare, false)
	if err != nil {
		return nil, err
	}
	w, err := newWalker(p, true)
	if err != nil {
		return nil, errors.Join(err, base.sw.Close())
	}
	measure := func(context.Context) ([]reading, error) {
		none, err := base.measure(window, false)
		known, err2 := w.measure(window, false)
		fresh, err3 := w.measure(window, true)
		readings := []reading{
			{knownAlone, "ns", known.nanoseconds - none.nanoseconds},
			{freshAlone, "ns", fresh.nanoseconds - none.nanoseconds},
		}
		if full {
			readings = append(readings,
				reading{"known connection, with ports in memory", "ns", known.nanoseconds},
				reading{"new connection, with ports in memory", "ns", fresh.nanoseconds},
				reading{"entries that a packet of a known connection takes", "entries", known.entries},
				reading{"known connection, each entry", "ns", (known.nanoseconds - none.nanoseconds) / max(known.entries, 1)},
				reading{"entries that the first packet takes", "entries", fresh.entries},
				reading{"new connection, each entry", "ns", (fresh.nanoseconds - none.nanoseconds) / max(fresh.entries, 1)},
				// Whole ones: the measurement itself makes a few in all.
				reading{"known connection, allocations of a packet", "allocs", math.Round(known.allocations)},
				reading{"new connection, allocations of a packet", "allocs", math.Round(fresh.allocations)})
		}
		return readings, errors.Join(err, err2, err3)
	}
	return &side{name: "antrail", measure: measure, close: func() error { return errors.Join(base.sw.Close(), w.sw.Close()) }}, nil
}

// ovsWalk is an Open vSwitch between the links of a topology. Its polling
// threads never rest, so it runs only while it is measured.
type ovsWalk struct {
	*ovsConntrack
	program, bare *flow.Program
	window        time.Duration
}

func openOVSWalk(_ context.Context, p *flow.Program, window time.Duration) (*side, error) {
	bare, err := bareProgram()
	if err != nil {
		return nil, err
	}
	measure := func(ctx context.Context) (readings []reading, err error) {
		err = inOwnNamespace(func(ns netns.NsHandle) error {
			w := &ovsWalk{&ovsConntrack{}, p, bare, window}
			readings, err = w.round(ctx, ns)
			return err
		})
		return readings, err
	}
	return &side{name: ovsVersion(), measure: measure}, nil
}

// round starts the switch, measures and ends it.
func (w *ovsWalk) round(ctx context.Context, ns netns.NsHandle) (readings []reading, err error) {
	if w.net, err = newTopology(ns); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.net.close()) }()
	if w.ovsSwitch, err = startOVS(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.ovsSwitch.close()) }()
	names := w.program.Names
	if err := w.install(ctx, &flow.Program{Names: names, Entries: w.bare.Entries}, xdpPorts(sender(), receiver())); err != nil {
		return nil, err
	}
	if err := w.calibrate(ctx); err != nil {
		return nil, err
	}
	var base, known, fresh float64
	base, err = w.nanoseconds(ctx, false)
	if err == nil {
		err = errors.Join(w.load(ctx, w.program), w.net.prime())
	}
	if err == nil {
		known, err = w.nanoseconds(ctx, false)
	}
	if err == nil {
		fresh, err = w.nanoseconds(ctx, true)
	}
	return []reading{{knownAlone, "ns", known - base}, {freshAlone, "ns", fresh - base}}, err
}

// ovsRate is the frames a second that the polling thread gets: enough that it
// has batches, as under load. What it has no room for is lost before it counts.
const ovsRate = 400_000

// nanoseconds is what a packet costs the polling thread.
func (w *ovsWalk) nanoseconds(ctx context.Context, fresh bool) (float64, error) {
	g, err := w.net.startGenerator(&mix{"64 bytes", []mixed{{64, 1}}}, fresh)
	if err != nil {
		return 0, err
	}
	if _, err := g.sendFor(ctx, ovsRate/10, 50*time.Millisecond); err != nil { // so that caches know the connection
		return 0, errors.Join(err, g.stop())
	}
	s, err := w.account(ctx, func() error {
		_, err := g.sendFor(ctx, ovsRate, w.window)
		return err
	})
	if err == nil && s.packets < 100 {
		err = fmt.Errorf("%.0f packets came through", s.packets)
	}
	return s.busy / max(s.packets, 1) / w.hertz * 1e9, errors.Join(err, g.stop())
}

const policyNote = "Each rule is one source address, one port and the pod that receives, as a conjunction of three; a hundred rules have one priority. None of them matches the packets, which pass them all."

func runPolicy(ctx context.Context, r *rig, c *Comparison) error {
	c.Notes = append(c.Notes, policyNote)
	var sizes []int
	for n := 10; n <= r.Largest; n *= 10 {
		sizes = append(sizes, n)
	}
	end := r.until
	defer func() { r.until = end }()
	for i, n := range sizes {
		program, err := policyProgram(n)
		if err != nil {
			return err
		}
		r.until = share(time.Now(), end, len(sizes)-i)
		if err := r.contestProgram(ctx, c, float64(n), program); err != nil {
			return fmt.Errorf("%d rules: %w", n, err)
		}
		runtime.GC() // a large program goes before the next one comes
	}
	return nil
}
