package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// Open vSwitch with two polling threads. On a machine of two processors what
// makes packets would share one with a thread, and a thread that is interrupted
// counts that as its work. So the switch is stopped while packets fill the rings
// of two ports, and both threads work them off at the same time, undisturbed.

// pairPackets is how many packets a figure is taken from: they come in bursts,
// and each takes long.
const pairPackets = 60_000

// napLength is how long an idle thread sleeps at most, in microseconds: so a
// stop finds it asleep, and its account shows no work then.
const napLength = 100

// measureThreads is the part of a round with two polling threads. It brings no
// figures on a machine of one processor, and where threads never sleep (Open
// vSwitch before 3.1).
func measureThreads(ctx context.Context, o *ConntrackOptions, net *topology, hertz float64, f figures) (err error) {
	if runtime.NumCPU() < 2 {
		return nil
	}
	c := &ovsConntrack{
		net: net, from: [2]int{net.source, net.sink}, threads: 2, hertz: hertz,
		packets: min(o.Packets, pairPackets), known: lookupRate2, created: creationRate2,
	}
	c.give = c.sendAtOnce
	if c.ovsSwitch, err = startOVS(ctx, "pmd-cpu-mask=0x3", fmt.Sprintf("pmd-maxsleep=%d", napLength)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for i, link := range []string{inLink, outLink} {
		err := c.vsctl(ctx, "add-port", "br0", link, "--", "set", "interface", link, "type=afxdp", "options:xdp-mode=native",
			fmt.Sprintf(`other_config:pmd-rxq-affinity="0:%d"`, i))
		if err != nil {
			return err
		}
	}
	if naps, err := c.naps(ctx); err != nil || !naps {
		return err
	}
	bare, err := c.bareCycles(ctx, o)
	if err != nil {
		return err
	}
	return c.rates(ctx, o, f, bare)
}

// naps says whether idle threads sleep.
func (c *ovsConntrack) naps(ctx context.Context) (bool, error) {
	out, err := c.appctl(ctx, "dpif-netdev/pmd-perf-show")
	return strings.Contains(out, "sleep iterations"), err
}
