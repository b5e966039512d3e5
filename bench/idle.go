package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/lab"
	"github.com/vishvananda/netlink"
	"sigs.k8s.io/yaml"
)

// Profile idle: what a switch costs a Node whose pods say nothing.

// idlePorts is how many ports an idle switch has.
const idlePorts = 100

// idleWindows is how many windows an idle switch is watched for: there is
// little to see in one.
const idleWindows = 10

// idleSettle is how long new links are left alone before they are idle.
const idleSettle = time.Second

func runIdle(ctx context.Context, r *rig, c *Comparison) (err error) {
	c.Notes = append(c.Notes, fmt.Sprintf("A switch with %d ports on veths, none of which brings a packet: processor time of all threads of its process, and how often one of them runs. "+
		"antrail: an agent, packet sockets. Open vSwitch: its daemon, userspace datapath, AF_PACKET ports. Both: one entry, NORMAL.", idlePorts))
	var sides []*side
	defer func() { err = errors.Join(err, closeAll(sides)) }()
	c.absentOVS(ovsMissing())
	openers := []func(context.Context, *rig) (*side, error){openIdleOVS, openIdleAgent}
	if ovsMissing() != nil {
		openers = openers[1:]
	}
	for _, open := range openers {
		s, err := open(ctx, r)
		if err != nil {
			return err
		}
		sides = append(sides, s)
	}
	wait(ctx, idleSettle)
	return r.contest(ctx, c, sides)
}

// idleSide measures a process in a Node of its own.
func (r *rig) idleSide(name, pid string, end func() error) *side {
	measure := func(ctx context.Context) ([]reading, error) {
		before, err := usageOf(pid)
		start := time.Now()
		wait(ctx, idleWindows*r.Window)
		took := time.Since(start).Seconds()
		after, err2 := usageOf(pid)
		return []reading{
			{"processor time", "% of a core", 100 * (after.busy - before.busy).Seconds() / took},
			{"runs of a thread", "1/s", float64(after.runs-before.runs) / took},
		}, errors.Join(err, err2)
	}
	return &side{name: name, measure: measure, close: end}
}

// usage is what the threads of a process had of the processors.
type usage struct {
	busy time.Duration
	runs uint64
}

// usageOf reads it from schedstat, which counts nanoseconds where the times of
// stat are samples.
func usageOf(pid string) (sum usage, err error) {
	threads, err := filepath.Glob("/proc/" + pid + "/task/*/schedstat")
	if err == nil && len(threads) == 0 {
		err = fmt.Errorf("process %s is gone, or the kernel tells no thread's time", pid)
	}
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a thread that ended
		}
		var busy, waited, runs uint64
		if _, err2 := fmt.Sscan(string(text), &busy, &waited, &runs); errors.Join(err, err2) != nil {
			return sum, fmt.Errorf("%s: %w", name, errors.Join(err, err2))
		}
		sum.busy += time.Duration(busy)
		sum.runs += runs
	}
	return sum, err
}

// newIdleNode is a Node with idlePorts links that lead to its one pod.
func newIdleNode() (*node, []string, error) {
	n, err := newNode(1)
	if err != nil {
		return nil, nil, err
	}
	quiet := func() error { // IPv6 would look for routers and neighbours on each link
		return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	}
	if err := errors.Join(within(n.ns)(quiet), within(n.pods[0])(quiet)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, errors.Join(err, n.close())
	}
	var links []string
	for i := range idlePorts {
		links = append(links, "port"+strconv.Itoa(i))
	}
	err = within(n.ns)(func() error {
		for _, name := range links {
			attrs := netlink.NewLinkAttrs()
			attrs.Name, attrs.NumTxQueues, attrs.NumRxQueues = name, 1, 1
			if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerNamespace: netlink.NsFd(n.pods[0])}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, ns := range []func(func() error) error{within(n.ns), within(n.pods[0])} {
		err = errors.Join(err, ns(func() error { return setAllUp(links) }))
	}
	if err != nil {
		return nil, nil, errors.Join(err, n.close())
	}
	return n, links, nil
}

func setAllUp(links []string) error {
	for _, name := range links {
		if err := setUp(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// openIdleOVS is an idle Open vSwitch.
func openIdleOVS(ctx context.Context, r *rig) (*side, error) {
	n, links, err := newIdleNode()
	if err != nil {
		return nil, err
	}
	s, stay, err := n.startOVS(ctx)
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	end := func() error { defer close(stay); return errors.Join(s.close(), n.close()) }
	var add []string
	for _, name := range links {
		add = append(add, "--", "add-port", "br0", name, "--", "set", "interface", name, "type=system")
	}
	if err := errors.Join(s.vsctl(ctx, add...), s.flow(ctx, "actions=NORMAL")); err != nil {
		return nil, errors.Join(err, end())
	}
	return r.idleSide(ovsVersion(), s.pid(), end), nil
}

// openIdleAgent is an idle agent.
func openIdleAgent(ctx context.Context, r *rig) (*side, error) {
	n, links, err := newIdleNode()
	if err != nil {
		return nil, err
	}
	var a *plainAgent
	err = within(n.ns)(func() error { return setAddress("lo", lab.TwoNodes().Nodes[0].Address.V4.String()) }) // for the tunnel
	if err == nil {
		a, err = startAgent(ctx, r.Binary, within(n.ns), links)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("agent: %w", err), n.close())
	}
	return r.idleSide("antrail", strconv.Itoa(a.cmd.Process.Pid), func() error { return errors.Join(a.close(), n.close()) }), nil
}

// plainAgent is an agent without a lab, of a single entry.
type plainAgent struct {
	dir string
	cmd *exec.Cmd
}

// startAgent starts an agent with ports on links and waits until it is ready.
// binary is the running one when empty.
func startAgent(ctx context.Context, binary string, within func(func() error) error, links []string) (*plainAgent, error) {
	if binary == "" {
		binary = "/proc/self/exe"
	}
	dir, err := os.MkdirTemp("", "antrail-bench")
	if err != nil {
		return nil, err
	}
	a := &plainAgent{dir: dir, cmd: exec.Command(binary, "agent", "--config", filepath.Join(dir, "agent.yaml"))}
	var log strings.Builder
	a.cmd.Stdout, a.cmd.Stderr = &log, &log
	if err := errors.Join(a.configure(links), within(a.cmd.Start)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	client := agent.NewClient(filepath.Join(dir, "socket"))
	for deadline := time.Now().Add(daemonPatience); client.Ready(ctx) != nil; wait(ctx, 10*time.Millisecond) {
		if time.Now().After(deadline) || ctx.Err() != nil {
			err := errors.Join(a.close(), ctx.Err())
			return nil, fmt.Errorf("it is not ready: %w\n%s", err, log.String())
		}
	}
	return a, nil
}

// configure writes the agent's files into its directory.
func (a *plainAgent) configure(links []string) error {
	plan := lab.TwoNodes()
	plan.Nodes[0].Pods = nil
	c := plan.Config(&plan.Nodes[0], a.dir, nil)
	c.Socket, c.Flows = filepath.Join(a.dir, "socket"), "entries"
	for i, name := range links {
		c.Ports = append(c.Ports, agent.Port{Name: name, OFPort: uint32(10 + i), Driver: agent.DriverAFPacket})
	}
	text, err := yaml.Marshal(c)
	return errors.Join(err,
		os.WriteFile(filepath.Join(a.dir, "agent.yaml"), text, 0o600),
		os.WriteFile(filepath.Join(a.dir, "entries"), []byte("table=0 actions=NORMAL\n"), 0o600))
}

// close ends the agent, by force if it does not go, and removes its directory.
func (a *plainAgent) close() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	force := time.AfterFunc(daemonPatience, func() { _ = a.cmd.Process.Kill() })
	err := reap(a.cmd)
	force.Stop()
	return errors.Join(err, os.RemoveAll(a.dir))
}
