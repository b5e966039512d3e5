package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/vishvananda/netns"
)

// Profile forward: frames one way from a veth to another, at the highest rate
// at which none is lost.

// mixes are what is forwarded. IMIX is 7 : 4 : 1 of small, middle and full
// frames, without their checksum of 4 bytes.
var mixes = []mix{
	{"64 bytes", []mixed{{64, 1}}},
	{"512 bytes", []mixed{{512, 1}}},
	{"1400 bytes", []mixed{{1400, 1}}},
	{"IMIX", []mixed{{1464, 1}, {590, 4}, {60, 7}}},
}

// The range of the search in frames a second, its precision, and the part of
// the frames that may be lost: a shared machine takes the processor away for a
// moment now and then.
const (
	lowestRate    = 5_000
	highestSought = 4_000_000
	ratePrecision = 1.05
	tolerance     = 0.001
)

const forwardNote = "Frames one way from a veth to another, made by the kernel in bursts; the highest rate at which at most 1 of 1,000 is lost, found by search. " +
	"The Linux bridge forwards on the generator's thread; the others have a thread beside it. slavc/xdp and ports forward and do nothing else; " +
	"antrail and Open vSwitch take each frame through the pipeline of examples/two-nodes as one of a known UDP connection."

// forwardSide is a contender: open takes it into operation between the links of
// a topology, in the calling thread's namespace.
type forwardSide struct {
	name  string
	open  func(context.Context, *topology) (stop func() error, err error)
	prime bool // it tracks connections
}

func forwardSides() []forwardSide {
	return []forwardSide{
		{"Linux bridge", openKernelBridge, false},
		{"slavc/xdp", spin(openLibrary), false},
		{"ports/afxdp", spin(func(*topology) (forwarder, error) { return asForwarder(openXDPPorts()) }), false},
		{"ports/afpacket", spin(func(*topology) (forwarder, error) { return asForwarder(openPacketPorts()) }), false},
		{"antrail afxdp", openPipeline(openXDPPorts), true},
		{"antrail afpacket", openPipeline(openPacketPorts), true},
	}
}

// asForwarder makes a nil interface of a nil pair.
func asForwarder(p *portPair, err error) (forwarder, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

func runForward(ctx context.Context, r *rig, c *Comparison) error {
	c.Notes = append(c.Notes, forwardNote)
	list := forwardSides()
	if why := ovsMissing(); why != nil {
		c.Notes = append(c.Notes, missingError{"Open vSwitch", why}.Error())
	} else {
		list = append(list, forwardSide{ovsVersion() + " afxdp", openOVSForwarder, true})
	}
	var sides []*side
	for _, s := range list {
		sides = append(sides, &side{name: s.name, measure: func(ctx context.Context) (readings []reading, err error) {
			err = inOwnNamespace(func(ns netns.NsHandle) (err error) { readings, err = s.measure(ctx, ns, r.Window/8); return err })
			return readings, err
		}})
	}
	return r.contest(ctx, c, 0, sides)
}

// measure finds the rate for every mix.
func (s *forwardSide) measure(ctx context.Context, ns netns.NsHandle, window time.Duration) (readings []reading, err error) {
	t, err := newTopology(ns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	stop, err := s.open(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if s.prime {
		if err := t.prime(); err != nil {
			return nil, err
		}
	}
	for _, m := range mixes {
		rate, err := t.search(ctx, &m, window)
		if err != nil {
			return nil, err
		}
		readings = append(readings, reading{m.name, "Mpps", rate / 1e6})
	}
	return readings, nil
}

// search finds the rate for a mix.
func (t *topology) search(ctx context.Context, m *mix, window time.Duration) (rate float64, err error) {
	g, err := t.startGenerator(m, false)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	return highestRate(lowestRate, highestSought, ratePrecision, func(rate float64) (bool, error) {
		return t.sustains(ctx, g, rate, window)
	})
}

// sustains says whether frames at a rate arrive, at the second try at least.
func (t *topology) sustains(ctx context.Context, g *generator, rate float64, window time.Duration) (bool, error) {
	for range 2 {
		before, err := t.arrived()
		if err != nil {
			return false, err
		}
		sent, took, err := g.sendFor(ctx, rate, window)
		if err != nil {
			return false, err
		}
		after, err := t.arrived()
		if err != nil {
			return false, err
		}
		if float64(after-before) >= (1-tolerance)*float64(sent) && float64(sent)/took.Seconds() > 0.9*rate {
			return true, nil
		}
	}
	return false, nil
}

// prime makes the known connection known: a frame there and a frame back, until
// the one comes through.
func (t *topology) prime() error {
	for range 200 {
		before, err := t.arrived()
		if err != nil {
			return err
		}
		if err := errors.Join(sendOne(t.source, there(64)), sendOne(t.sink, back(64))); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
		if after, err := t.arrived(); err != nil || after > before {
			return err
		}
	}
	return fmt.Errorf("no frame from %s arrives at %s", sender().Name, receiver().Name)
}

// openKernelBridge makes both links ports of a bridge.
func openKernelBridge(context.Context, *topology) (func() error, error) {
	if err := errors.Join(addBridge(podMTU), enslave(inLink), enslave(outLink)); err != nil {
		return nil, err
	}
	return func() error { return nil }, nil // the bridge goes with its namespace
}

// openOVSForwarder runs an Open vSwitch with the pipeline of examples/two-nodes
// and AF_XDP ports.
func openOVSForwarder(ctx context.Context, _ *topology) (func() error, error) {
	s, err := startOVS(ctx)
	if err != nil {
		return nil, err
	}
	program, err := exampleProgram("two-nodes/node-a")
	if err == nil {
		err = s.install(ctx, program, xdpPorts(sender(), receiver()))
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s.close, nil
}

// xdpPorts are the links of a topology as AF_XDP ports of pods.
func xdpPorts(in, out lab.Pod) map[string]ovsPort {
	return map[string]ovsPort{in.Name: {inLink, "afxdp"}, out.Name: {outLink, "afxdp"}}
}
