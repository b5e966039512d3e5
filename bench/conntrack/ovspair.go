package conntrack

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/testbed"
)

// Open vSwitch with two polling threads. On a machine with two processors the generator would share one
// with a thread, and a thread that is interrupted counts that as work. So the switch is stopped while
// packets fill the rings of two ports. Then both threads work them off at the same time, undisturbed.

// pairPackets is how many packets a figure is measured with at most. They come in bursts, and a burst
// takes long.
const pairPackets = 60_000

// napLength is how long an idle thread sleeps at most, in microseconds. So it sleeps when the switch is
// stopped, and counts no work then.
const napLength = 100

// measureThreads measures two polling threads. It has no figures on a machine with one processor, and if
// threads never sleep (Open vSwitch before 3.1).
func measureThreads(ctx context.Context, o *Options, net *testbed.Topology, hertz float64, f figures) (err error) {
	if runtime.NumCPU() < 2 {
		return nil
	}
	c := &ovsSide{
		net: net, from: [2]int{net.Source, net.Sink}, PollingSwitch: &ovs.PollingSwitch{Threads: 2, Hertz: hertz},
		packets: min(o.Packets, pairPackets), known: lookupRate2, created: creationRate2,
	}
	c.sendMeasured = c.sendAtOnce
	if c.Switch, err = ovs.Start(ctx, "pmd-cpu-mask=0x3", fmt.Sprintf("pmd-maxsleep=%d", napLength)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for i, link := range []string{testbed.InLink, testbed.OutLink} {
		err := c.Vsctl(ctx, "add-port", "br0", link, "--", "set", "interface", link, "type=afxdp", "options:xdp-mode=native",
			fmt.Sprintf(`other_config:pmd-rxq-affinity="0:%d"`, i))
		if err != nil {
			return err
		}
	}
	if sleep, err := c.threadsSleep(ctx); err != nil || !sleep {
		return err
	}
	bare, err := c.measureBareCycles(ctx, o)
	if err != nil {
		return err
	}
	return c.measureRates(ctx, o, f, bare)
}

// threadsSleep says whether idle threads sleep.
func (c *ovsSide) threadsSleep(ctx context.Context) (bool, error) {
	out, err := c.Appctl(ctx, "dpif-netdev/pmd-perf-show")
	return strings.Contains(out, "sleep iterations"), err
}
