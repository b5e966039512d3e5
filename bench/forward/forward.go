package forward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
	"github.com/antrail/antrail/lab"
	"github.com/vishvananda/netns"
)

// forwardNotes say what profile forward measures.
var forwardNotes = []string{
	"The kernel sends frames in bursts into a veth, and the contender forwards them to another veth.",
	"Overload: the frames that come through when more are sent than any contender takes. Without loss: the highest rate, found by search, at which at most 1 frame of 1,000 is lost in one try of three.",
	"Processor time is the time that the contender's threads ran under overload, for each frame. A contender that forwards on the generator's thread has none.",
	"Under overload, a window has twelve parts, and a figure is their median. The rig discards a part if the contender's busiest thread or the generator waited for its processor. If fewer than four parts are left, the figure is that of the whole time.",
	"The Linux bridge forwards on the generator's thread. The others have a thread of their own, on another processor.",
	"slavc/xdp and the bare ports only forward. antrail and Open vSwitch take each frame through the pipeline of examples/two-nodes: a frame of a known UDP connection, or the first of a new one.",
}

// contender forwards frames between the links of a topology.
type contender struct {
	name string
	// open starts it in the calling thread's namespace.
	open func(context.Context, *testbed.Topology) (*running, error)
	// tracks says that it tracks connections.
	tracks bool
}

// running is a contender that forwards.
type running struct {
	stop func() error
	// process is the number of the process whose threads forward, or "self". It is empty if the kernel
	// forwards.
	process string
}

// contenders are the contenders that every machine has.
func contenders() []contender {
	return []contender{
		{"Linux bridge", openKernelBridge, false},
		{"slavc/xdp", spinForwarder(openLibrary), false},
		{"ports/afxdp", spinForwarder(func(*testbed.Topology) (forwarder, error) { return asForwarder(openXDPPorts()) }), false},
		{"ports/afpacket", spinForwarder(func(*testbed.Topology) (forwarder, error) { return asForwarder(openPacketPorts()) }), false},
		{"antrail afxdp", openSwitchOn(openXDPPorts), true},
		{"antrail afpacket", openSwitchOn(openPacketPorts), true},
	}
}

// Run is profile forward. It measures how many frames come through from one veth to another under
// overload, and the highest rate without loss.
func Run(ctx context.Context, r *rig.Rig, c *report.Comparison) error {
	c.Notes = append(c.Notes, forwardNotes...)
	c.NoteMissing("Open vSwitch", ovs.Missing())
	list := contenders()
	if ovs.Missing() == nil {
		list = append(list, contender{ovs.Version() + " afxdp", openOVSForwarder, true})
	}
	var sides []*rig.Side
	for _, s := range list {
		sides = append(sides, &rig.Side{Name: s.name, Measure: func(ctx context.Context) (readings []rig.Reading, err error) {
			err = testbed.InOwnNamespace(func(ns netns.NsHandle) (err error) { readings, err = s.measureAll(ctx, ns, r.Window); return err })
			return readings, err
		}})
	}
	return r.RunRounds(ctx, c, sides)
}

// measureAll measures every mix, and new connections if the contender tracks them.
func (s *contender) measureAll(ctx context.Context, ns netns.NsHandle, window time.Duration) (readings []rig.Reading, err error) {
	t, err := testbed.NewTopology(ns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	running, err := s.open(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.stop()) }()
	if s.tracks {
		if err := makeKnown(t); err != nil {
			return nil, err
		}
	}
	if running.process != "" {
		if err := t.ReserveProcessor(); err != nil {
			return nil, err
		}
	}
	lower, err := sched.RaisePriority()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lower()) }()
	for _, m := range mixes {
		got, err := measureLoad(ctx, &load{links: t, mix: &m, name: m.name, process: running.process, window: window})
		if err != nil {
			return nil, err
		}
		readings = append(readings, got...)
	}
	if s.tracks {
		got, err := measureLoad(ctx, &load{links: t, mix: &mixes[0], newConnections: true, name: "new connections", process: running.process, window: window})
		return append(readings, got...), err
	}
	return readings, nil
}

// makeKnown makes the known connection known to a contender: it sends a frame each way until one arrives.
func makeKnown(t *testbed.Topology) error {
	for range 200 {
		before, err := t.Arrived()
		if err != nil {
			return err
		}
		if err := errors.Join(testbed.SendFrame(t.Source, testbed.KnownFrame(64)), testbed.SendFrame(t.Sink, testbed.AnswerFrame(64))); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
		if after, err := t.Arrived(); err != nil || after > before {
			return err
		}
	}
	return fmt.Errorf("no frame from %s arrives at %s", testbed.Sender().Name, testbed.Receiver().Name)
}

// openKernelBridge makes both links ports of a Linux bridge.
func openKernelBridge(context.Context, *testbed.Topology) (*running, error) {
	if err := errors.Join(testbed.AddBridge(testbed.PodMTU), testbed.AddToBridge(testbed.InLink), testbed.AddToBridge(testbed.OutLink)); err != nil {
		return nil, err
	}
	return &running{stop: func() error { return nil }}, nil // the bridge goes with its namespace
}

// openOVSForwarder runs an Open vSwitch with the pipeline of examples/two-nodes on AF_XDP ports.
func openOVSForwarder(ctx context.Context, _ *testbed.Topology) (*running, error) {
	s, err := ovs.Start(ctx)
	if err != nil {
		return nil, err
	}
	program, err := workload.ExampleProgram("two-nodes/node-a")
	if err == nil {
		err = s.Install(ctx, program, xdpPorts(testbed.Sender(), testbed.Receiver()))
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &running{s.Close, s.PID()}, nil
}

// xdpPorts are the links of a topology as AF_XDP ports of two pods.
func xdpPorts(in, out lab.Pod) map[string]ovs.Port {
	return map[string]ovs.Port{in.Name: {Link: testbed.InLink, Kind: ovs.AFXDP}, out.Name: {Link: testbed.OutLink, Kind: ovs.AFXDP}}
}
