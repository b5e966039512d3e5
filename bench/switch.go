package bench

import (
	"context"
	"errors"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports"
)

// switchOptions are what a switch has that others do not.
type switchOptions struct {
	connections int  // room for so many; for conntrack.DefaultMax when 0
	cache       int  // as in dataplane.Config: negative where every packet is to walk every table
	timeEvery   int  // as there
	keepAwake   bool // as there
}

// newSwitchFor is a switch with a program and two ports, under the numbers that
// the program gives to the sender and the receiver. Closing it closes the ports.
func newSwitchFor(o switchOptions, p *flow.Program, in, out ports.Port) (*dataplane.Switch, *conntrack.Table, error) {
	start := time.Now()
	clock := func() int64 { return int64(time.Hour + time.Since(start)) }
	ct := conntrack.NewTable(conntrack.Config{Now: clock, NewRate: -1, Max: o.connections})
	sw, err := dataplane.New(dataplane.Config{Conntrack: ct, Clock: clock, Cache: o.cache, TimeEvery: o.timeEvery, KeepAwake: o.keepAwake})
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(sw.Apply(dataplane.BundleOf(p)), sw.AddPort(sender().OFPort, in), sw.AddPort(receiver().OFPort, out))
	if err != nil {
		return nil, nil, errors.Join(err, sw.Close())
	}
	return sw, ct, nil
}

// mostForwarded is how many connections a switch of profile forward has room for:
// more than a round makes, for at a full table a connection is refused or costs
// somebody else's place. Open vSwitch has room for 3,000,000.
const mostForwarded = 2_000_000

// openPipeline runs a switch with the pipeline of examples/two-nodes on a pair
// of ports.
func openPipeline(open func() (*portPair, error)) func(context.Context, *topology) (*running, error) {
	return func(ctx context.Context, _ *topology) (*running, error) {
		program, err := exampleProgram("two-nodes/node-a")
		if err != nil {
			return nil, err
		}
		pair, err := open()
		if err != nil {
			return nil, err
		}
		sw, _, err := newSwitchFor(switchOptions{connections: mostForwarded}, program, pair.in, pair.out)
		if err != nil {
			return nil, errors.Join(err, pair.close())
		}
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- sw.Run(ctx) }()
		return &running{process: "self", stop: func() error {
			cancel()
			return errors.Join(<-ended, sw.Close(), pair.release())
		}}, nil
	}
}
