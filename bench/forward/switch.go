package forward

import (
	"context"
	"errors"

	"github.com/antrail/antrail/bench/testbed"
	"github.com/antrail/antrail/bench/workload"
)

// mostForwarded is how many connections a switch has room for. That is more than a round makes, since a
// full table evicts. Open vSwitch has room for 3,000,000.
const mostForwarded = 2_000_000

// openSwitchOn returns a function that runs a switch with the pipeline of examples/two-nodes on a pair of
// ports.
func openSwitchOn(open func() (*portPair, error)) func(context.Context, *testbed.Topology) (*running, error) {
	return func(ctx context.Context, _ *testbed.Topology) (*running, error) {
		program, err := workload.ExampleProgram("two-nodes/node-a")
		if err != nil {
			return nil, err
		}
		pair, err := open()
		if err != nil {
			return nil, err
		}
		sw, _, err := testbed.NewSwitch(testbed.SwitchOptions{Connections: mostForwarded}, program, pair.in, pair.out)
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
