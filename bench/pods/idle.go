package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/antrail/antrail/bench/ovs"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
	"github.com/vishvananda/netlink"
)

// idlePorts is how many ports an idle switch has.
const idlePorts = 100

// idleWindows is how many windows an idle switch is watched for. It runs too little to be seen in one.
const idleWindows = 10

// idleSettle is how long new links take to become idle.
const idleSettle = time.Second

// RunIdle is profile idle: what a switch costs a Node whose pods send nothing.
func RunIdle(ctx context.Context, r *rig.Rig, c *report.Comparison) (err error) {
	c.Notes = append(c.Notes,
		fmt.Sprintf("A switch has %d ports on veths, and no packet arrives. The figures are the processor time of all threads of its processes, and how often one of them runs.", idlePorts),
		"antrail: an agent and its switch, packet sockets. Open vSwitch: its daemon, userspace datapath, AF_PACKET ports. Both: one entry, NORMAL.")
	var sides []*rig.Side
	defer func() { err = errors.Join(err, rig.CloseSides(sides)) }()
	c.NoteMissing("Open vSwitch", ovs.Missing())
	openers := []func(context.Context, *rig.Rig) (*rig.Side, error){openIdleOVS, openIdleAgent}
	if ovs.Missing() != nil {
		openers = openers[1:]
	}
	for _, open := range openers {
		s, err := open(ctx, r)
		if err != nil {
			return err
		}
		sides = append(sides, s)
	}
	sched.Wait(ctx, idleSettle)
	return r.RunRounds(ctx, c, sides)
}

// idleSide is a side that measures processes.
func idleSide(r *rig.Rig, name string, pids []string, end func() error) *rig.Side {
	measure := func(ctx context.Context) ([]rig.Reading, error) {
		before, err := sched.UsageOf(pids...)
		start := time.Now()
		sched.Wait(ctx, idleWindows*r.Window)
		took := time.Since(start).Seconds()
		after, err2 := sched.UsageOf(pids...)
		return []rig.Reading{
			{Name: "processor time", Unit: "% of a core", Value: 100 * (after.Busy - before.Busy).Seconds() / took},
			{Name: "runs of a thread", Unit: "1/s", Value: float64(after.Runs-before.Runs) / took},
		}, errors.Join(err, err2)
	}
	return &rig.Side{Name: name, Measure: measure, Close: end}
}

// newIdleNode makes a Node with idlePorts links to its single pod, and returns their names.
func newIdleNode() (*testbed.Node, []string, error) {
	n, err := testbed.NewNode(1)
	if err != nil {
		return nil, nil, err
	}
	quiet := func() error { // IPv6 would send router and neighbour solicitations
		return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	}
	if err := errors.Join(testbed.Within(n.NS)(quiet), testbed.Within(n.Pods[0])(quiet)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, errors.Join(err, n.Close())
	}
	var links []string
	for i := range idlePorts {
		links = append(links, "port"+strconv.Itoa(i))
	}
	err = testbed.Within(n.NS)(func() error {
		for _, name := range links {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = name, 1, 1
			if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerNamespace: netlink.NsFd(n.Pods[0])}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, ns := range []func(func() error) error{testbed.Within(n.NS), testbed.Within(n.Pods[0])} {
		err = errors.Join(err, ns(func() error { return setLinksUp(links) }))
	}
	if err != nil {
		return nil, nil, errors.Join(err, n.Close())
	}
	return n, links, nil
}

// setLinksUp sets links of the calling thread's namespace up.
func setLinksUp(links []string) error {
	for _, name := range links {
		if err := testbed.SetLinkUp(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// openIdleOVS starts an Open vSwitch without traffic.
func openIdleOVS(ctx context.Context, r *rig.Rig) (*rig.Side, error) {
	n, links, err := newIdleNode()
	if err != nil {
		return nil, err
	}
	s, err := ovs.StartIn(ctx, n)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	end := func() error { return errors.Join(s.Close(), n.Close()) }
	var add []string
	for _, name := range links {
		add = append(add, "--", "add-port", "br0", name, "--", "set", "interface", name, "type=system")
	}
	if err := errors.Join(s.Vsctl(ctx, add...), s.SetFlow(ctx, "actions=NORMAL")); err != nil {
		return nil, errors.Join(err, end())
	}
	return idleSide(r, ovs.Version(), []string{s.PID()}, end), nil
}
