package conntrack

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/vishvananda/netns"
)

// Open vSwitch's side. Its conntrack cannot be called alone, so packets go through a switch with a
// userspace datapath. The kernel makes them and sends them into a veth. Its other end is an AF_XDP port
// with one polling thread. The single flow entry is ct(commit) with nothing behind it.
//
// The thread counts its cycles per packet. Less the cycles of the same packets with an entry that drops
// them, that is the cost of ct().

// ovsNotes say how Open vSwitch's figures are measured.
var ovsNotes = []string{
	"Open vSwitch: userspace datapath, one polling thread, an AF_XDP port. The figure is the thread's own cycles per packet with ct(commit), less the cycles with drop.",
	"Open vSwitch with two workers: two such ports and threads. The switch is stopped until packets fill both rings, so that both threads work at the same time and nothing else runs. The figure is the sum of both rates.",
	"Open vSwitch does not keep connections over a restart, and its sweep cannot be timed from outside.",
}

// ovsSide is a switch with a polling thread for each port.
type ovsSide struct {
	*ovs.PollingSwitch
	net *testbed.Topology
	// from is the links out of which packets are sent to the ports, in turn. With one port it is the
	// same link twice.
	from [2]int
	// sendMeasured sends packets into the switch whose cost is measured.
	sendMeasured func(context.Context, tuples, int) error
	// known and created are the figures that its rates are.
	known, created figure
	// packets is how many packets a figure is measured with.
	packets int
}

// measureOVS measures a round of Open vSwitch's side, in a namespace of its own that ends with its
// thread.
func measureOVS(ctx context.Context, o *Options) (figures, error) {
	type result struct {
		figures figures
		err     error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good: the namespace ends with the thread
		f, err := runOVSRound(ctx, o)
		done <- result{f, err}
	}()
	r := <-done
	return r.figures, r.err
}

// runOVSRound is measureOVS on a thread that is locked.
func runOVSRound(ctx context.Context, o *Options) (f figures, err error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	net, err := testbed.NewTopology(ns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, net.Close()) }()
	f = figures{}
	hertz, err := measureThread(ctx, o, net, f)
	if err != nil {
		return nil, err
	}
	return f, measureThreads(ctx, o, net, hertz, f)
}

// measureThread measures one polling thread. hertz is how many of the cycles that threads count a second
// has.
func measureThread(ctx context.Context, o *Options, net *testbed.Topology, f figures) (hertz float64, err error) {
	c := &ovsSide{
		net: net, from: [2]int{net.Source, net.Source}, PollingSwitch: &ovs.PollingSwitch{Threads: 1}, packets: o.Packets, known: lookupRate, created: creationRate,
	}
	c.sendMeasured = c.send
	if c.Switch, err = ovs.Start(ctx); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	err = c.Vsctl(ctx, "add-port", "br0", testbed.InLink, "--", "set", "interface", testbed.InLink, "type=afxdp", "options:xdp-mode=native")
	if err != nil {
		return 0, err
	}
	err = errors.Join(c.Calibrate(ctx), c.measure(ctx, o, f))
	return c.Hertz, err
}

// The flow entries.
const (
	dropped   = "ip,actions=drop"
	committed = "ip,actions=ct(commit)"
)

// measure measures all figures into f.
func (c *ovsSide) measure(ctx context.Context, o *Options, f figures) error {
	bare, err := c.measureBareCycles(ctx, o)
	if err != nil {
		return err
	}
	before, err := sched.ResidentMemory(c.PID())
	if err != nil {
		return err
	}
	if err := c.measureRates(ctx, o, f, bare); err != nil {
		return err
	}
	after, err := sched.ResidentMemory(c.PID())
	if err != nil {
		return err
	}
	n, err := c.Connections(ctx)
	if err != nil {
		return err
	}
	f[entrySize] = (after - before) / float64(n)
	return c.measureRefusals(ctx, o, f, bare)
}

// measureBareCycles returns the cycles per packet without ct(), by the number of clients. Key 0 is
// clients in turn.
func (c *ovsSide) measureBareCycles(ctx context.Context, o *Options) (map[uint32]threadCycles, error) {
	if err := c.SetFlow(ctx, dropped); err != nil {
		return nil, err
	}
	bare := map[uint32]threadCycles{}
	of := []uint32{0} // clients in turn
	for _, n := range o.sizes() {
		of = append(of, uint32(n))
	}
	for _, n := range of {
		cycles, err := c.measureCycles(ctx, tuples{of: n}, c.packets)
		if err != nil {
			return nil, err
		}
		bare[n] = cycles
	}
	return bare, nil
}

// measureRates measures known and new connections at all sizes.
func (c *ovsSide) measureRates(ctx context.Context, o *Options, f figures, bare map[uint32]threadCycles) error {
	if err := c.SetFlow(ctx, committed); err != nil {
		return err
	}
	next := uint32(0)
	for _, n := range o.sizes() {
		if err := c.makeConnections(ctx, n); err != nil {
			return err
		}
		known, err := c.measureCycles(ctx, tuples{of: uint32(n)}, c.packets)
		if err != nil {
			return err
		}
		next = max(next, uint32(n))
		created, err := c.measureCycles(ctx, tuples{first: next}, o.creations())
		if err != nil {
			return err
		}
		next += uint32(o.creations())
		f[c.known.atSize(n)] = c.rate(known, bare[uint32(n)])
		f[c.created.atSize(n)] = c.rate(created, bare[0])
	}
	return nil
}

// tries is how often packets are sent again that were lost. On a busy machine the ring may overflow while
// the switch's thread does not run.
const tries = 20

// makeConnections makes the connections of the first n clients, or nearly all of them. The port loses
// packets while its thread does not run.
func (c *ovsSide) makeConnections(ctx context.Context, n int) error {
	for range tries {
		have, err := c.Connections(ctx)
		if err != nil || have >= n-n/100 {
			return err
		}
		if err := c.send(ctx, tuples{}, n); err != nil {
			return err
		}
	}
	have, err := c.Connections(ctx)
	if err == nil && have < n-n/100 {
		err = fmt.Errorf("%d connections, want %d", have, n)
	}
	return err
}

// measureRefusals measures a full table and an exhausted port range.
func (c *ovsSide) measureRefusals(ctx context.Context, o *Options, f figures, bare map[uint32]threadCycles) error {
	n, err := c.Connections(ctx)
	if err != nil {
		return err
	}
	most, err := c.Appctl(ctx, "dpctl/ct-get-maxconns")
	if err != nil {
		return err
	}
	if _, err := c.Appctl(ctx, "dpctl/ct-set-maxconns", fmt.Sprint(n)); err != nil {
		return err
	}
	full, err := c.measureCycles(ctx, tuples{first: uint32(2 * o.Entries)}, o.Packets)
	if err != nil {
		return err
	}
	f[answeredFull] = (full[0] - bare[0][0]) / c.Hertz * 1e6
	_, err = c.Appctl(ctx, "dpctl/ct-set-maxconns", strings.TrimSpace(most))
	return errors.Join(err, c.measureExhaustion(ctx, o, f, bare[0][0]))
}

// measureExhaustion takes every port of a range and measures refused packets.
func (c *ovsSide) measureExhaustion(ctx context.Context, o *Options, f figures, bare float64) error {
	if _, err := c.Appctl(ctx, "dpctl/flush-conntrack"); err != nil {
		return err
	}
	entry := fmt.Sprintf("ip,actions=ct(commit,nat(src=203.0.113.1:40000-%d))", 40000+natPorts-1)
	if err := c.SetFlow(ctx, entry); err != nil {
		return err
	}
	for range 5 { // a search may miss a free port
		if err := c.send(ctx, tuples{}, 10*natPorts); err != nil {
			return err
		}
	}
	have, err := c.Connections(ctx)
	if err != nil || have < natPorts-natPorts/100 {
		return errors.Join(err, fmt.Errorf("%d of %d ports are taken", have, natPorts))
	}
	cycles, err := c.measureCycles(ctx, tuples{first: 100 * natPorts}, o.Packets/10)
	if err != nil {
		return err
	}
	f[refusalPortNAT] = (cycles[0] - bare) / c.Hertz * 1e6
	return nil
}
