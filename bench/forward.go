package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/lab"
	"github.com/vishvananda/netns"
)

// Profile forward: frames one way from a veth to another: how many get through
// when there are more than can, and the highest rate at which none is lost.

// mixes are what is forwarded. IMIX is 7 : 4 : 1 of small, middle and full
// frames, without their checksum of 4 bytes.
var mixes = []mix{
	{"64 bytes", []mixed{{64, 1}}},
	{"512 bytes", []mixed{{512, 1}}},
	{"1400 bytes", []mixed{{1400, 1}}},
	{"IMIX", []mixed{{1464, 1}, {590, 4}, {60, 7}}},
}

const forwardNote = "Frames one way from a veth to another, made by the kernel in bursts. Overload: what gets through of more than any contender takes. Without loss: the highest rate, found by search, at which at most 1 of 1,000 is lost in one try of three. " +
	"Processor time: what the contender's threads ran under overload, by frames; this and the rate are medians of twelve parts of a window in which neither the busiest of them nor the generator's had to wait for its processor, or where hardly any is left of all together; where the kernel does the work on the generator's thread there is none. " +
	"The Linux bridge forwards on the generator's thread; the others have a thread beside it, on another processor. slavc/xdp and ports forward and do nothing else; " +
	"antrail and Open vSwitch take each frame through the pipeline of examples/two-nodes, as one of a known UDP connection or each as the first of a new one."

// forwardSide is a contender: open takes it into operation between the links of
// a topology, in the calling thread's namespace.
type forwardSide struct {
	name  string
	open  func(context.Context, *topology) (*running, error)
	prime bool // it tracks connections
}

// running is a contender in operation.
type running struct {
	stop    func() error
	process string // whose threads forward: a process number or "self"; "" when none does
}

func forwardSides() []forwardSide {
	return []forwardSide{
		{bridgeName, openKernelBridge, false},
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
	c.absentOVS(ovsMissing())
	list := forwardSides()
	if ovsMissing() == nil {
		list = append(list, forwardSide{ovsVersion() + " afxdp", openOVSForwarder, true})
	}
	var sides []*side
	for _, s := range list {
		sides = append(sides, &side{name: s.name, measure: func(ctx context.Context) (readings []reading, err error) {
			err = inOwnNamespace(func(ns netns.NsHandle) (err error) { readings, err = s.measure(ctx, ns, r.Window); return err })
			return readings, err
		}})
	}
	return r.contest(ctx, c, sides)
}

// measure finds the rates for every mix, and for new connections.
func (s *forwardSide) measure(ctx context.Context, ns netns.NsHandle, window time.Duration) (readings []reading, err error) {
	t, err := newTopology(ns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	running, err := s.open(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.stop()) }()
	if s.prime {
		if err := t.prime(); err != nil {
			return nil, err
		}
	}
	if running.process != "" {
		if err := t.reserve(); err != nil {
			return nil, err
		}
	}
	lower, err := precede()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lower()) }()
	for _, m := range mixes {
		got, err := t.rates(ctx, &load{mix: &m, name: m.name, process: running.process, window: window})
		if err != nil {
			return nil, err
		}
		readings = append(readings, got...)
	}
	if s.prime {
		got, err := t.rates(ctx, &load{mix: &mixes[0], fresh: true, name: "new connections", process: running.process, window: window})
		return append(readings, got...), err
	}
	return readings, nil
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
func openKernelBridge(context.Context, *topology) (*running, error) {
	if err := errors.Join(addBridge(podMTU), enslave(inLink), enslave(outLink)); err != nil {
		return nil, err
	}
	return &running{stop: func() error { return nil }}, nil // the bridge goes with its namespace
}

// openOVSForwarder runs an Open vSwitch with the pipeline of examples/two-nodes
// and AF_XDP ports.
func openOVSForwarder(ctx context.Context, _ *topology) (*running, error) {
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
	return &running{s.close, s.pid()}, nil
}

// xdpPorts are the links of a topology as AF_XDP ports of pods.
func xdpPorts(in, out lab.Pod) map[string]ovsPort {
	return map[string]ovsPort{in.Name: {inLink, kindXDP}, out.Name: {outLink, kindXDP}}
}
