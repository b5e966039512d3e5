package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/lab"
)

// podPair is two pods, and something between them that is to be measured.
type podPair struct {
	name           string
	only           string                           // the profile in which it takes part; "": in all
	client, server func(func() error) error         // run a function in the pod's network namespace
	address        string                           // of the server's pod, with a port that its policies allow
	warm           func(context.Context, int) error // waits until so many streams pass as they will for long; nil: at once
	switches       []string                         // numbers of the processes that forward; none where the kernel does
	agent          *agent.Client                    // of a lab's Node
	rests          func(yes bool) error             // what never sleeps rests while others are measured; nil: nothing is to be done
	close          func() error
}

// awake measures while the pair takes part.
func (p *podPair) awake(measure func() ([]reading, error)) ([]reading, error) {
	if p.rests == nil {
		return measure()
	}
	if err := p.rests(false); err != nil {
		return nil, err
	}
	readings, err := measure()
	return readings, errors.Join(err, p.rests(true))
}

// podMTU is that of the labs' pods, and so of all.
const podMTU = 1450

// podPairs are the contenders of profiles with sockets, on one Node. They are
// made when the first profile asks, and stay for the others.
func (r *rig) podPairs(ctx context.Context, c *Comparison) ([]*podPair, error) {
	if r.pods == nil {
		if err := r.openPods(ctx); err != nil {
			return nil, err
		}
	}
	c.Notes = append(c.Notes, podsNote)
	c.Notes = append(c.Notes, r.absent...)
	return r.pods, nil
}

const podsNote = "Two pods on one Node, MTU 1450, each in a network namespace. antrail: a real agent, with the entries of examples/two-nodes. " +
	"Open vSwitch: userspace datapath with userspace-tso-enable, AF_PACKET ports, the very same entries, groups and meters; and the same with AF_XDP ports and the pods' transmit checksum offload off, at rest while others are measured."

func (r *rig) openPods(ctx context.Context) error {
	dir, err := writeExamples()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // the agents have read them when their labs are up
	openers := []opener{{bridgeName, openBridge}, {directName, openDirect}, {bareName, openBare}}
	for _, kind := range []string{kindSystem, kindXDP} {
		openers = append(openers, opener{ovsPodsName(kind), func() (*podPair, error) { return openOVSPods(ctx, kind) }})
	}
	openers = append(openers, r.labOpeners(ctx, dir, carriers...)...)
	sleepy := lab.Options{Driver: agent.DriverAFXDP, Offload: agent.OffloadOff, KeepAwake: agent.KeepAwakeOff}
	r.pods, r.absent, err = r.open(append(openers, r.labOpeners(ctx, dir, sleepy)...))
	return err
}

// carriers are the ways in which agents carry frames.
var carriers = []lab.Options{
	{Driver: agent.DriverAFPacket, Offload: agent.OffloadOff},
	{Driver: agent.DriverAFPacket, Offload: agent.OffloadAuto},
	{Driver: agent.DriverAFXDP, Offload: agent.OffloadOff},
}

// labOpeners are those of labs; the agents read the entries in dir.
func (r *rig) labOpeners(ctx context.Context, dir string, options ...lab.Options) (list []opener) {
	for _, o := range options {
		list = append(list, opener{labName(&o), func() (*podPair, error) { return r.openLab(ctx, dir, o) }})
	}
	return list
}

// opener makes the contender of a name.
type opener struct {
	name string
	open func() (*podPair, error)
}

// open makes the contenders that take part; absent says which ones the machine
// has not. Those that were made are given back with an error as well.
func (r *rig) open(openers []opener) (pairs []*podPair, absent []string, err error) {
	for _, o := range openers {
		if !r.wants(o.name) {
			continue
		}
		p, err := o.open()
		var missing missingError
		switch {
		case errors.As(err, &missing):
			absent = append(absent, missing.Error())
			r.say("%v", missing)
		case err != nil:
			return pairs, absent, err
		default:
			pairs = append(pairs, p)
		}
	}
	return pairs, absent, nil
}

// missingError is a contender that this machine has not.
type missingError struct {
	name string
	why  error
}

func (e missingError) Error() string { return fmt.Sprintf("%s: not present (%v).", e.name, e.why) }

func (r *rig) closePods() error {
	var errs []error
	for _, p := range r.pods {
		errs = append(errs, p.close())
	}
	r.pods = nil
	return errors.Join(errs...)
}

// contestPods measures something of every pair in turn, among ordinary programs.
func (r *rig) contestPods(ctx context.Context, c *Comparison, measure func(context.Context, *podPair) ([]reading, error)) error {
	return asOrdinary(func() error { return r.contestPairs(ctx, c, measure) })
}

func (r *rig) contestPairs(ctx context.Context, c *Comparison, measure func(context.Context, *podPair) ([]reading, error)) error {
	pairs, err := r.podPairs(ctx, c)
	if err != nil {
		return err
	}
	var sides []*side
	for _, p := range pairs {
		if p.only != "" && p.only != c.Profile {
			continue
		}
		sides = append(sides, &side{name: p.name, measure: func(ctx context.Context) ([]reading, error) {
			return p.awake(func() ([]reading, error) { return measure(ctx, p) })
		}})
	}
	return r.contest(ctx, c, sides)
}

// writeExamples writes the entries of examples/two-nodes into a new directory.
func writeExamples() (string, error) {
	dir, err := os.MkdirTemp("", "antrail-bench")
	if err != nil {
		return "", err
	}
	return dir, os.CopyFS(dir, examples.FS)
}

// labName is the name of a lab as a contender.
func labName(o *lab.Options) string {
	name := "antrail " + o.Driver
	if o.Offload == agent.OffloadAuto {
		name = "antrail offload"
	}
	if o.KeepAwake != "" {
		name += ", keepAwake " + o.KeepAwake
	}
	return name
}

// openLab is a lab of one Node, whose client and web pods talk as their
// policies allow.
func (r *rig) openLab(ctx context.Context, entries string, o lab.Options) (*podPair, error) {
	name := labName(&o)
	o.Nodes, o.Binary, o.StateDir, o.FlowsDir, o.Transient = 1, r.Binary, r.StateDir, entries+"/two-nodes", true
	l, err := lab.Up(ctx, o)
	if err != nil {
		return nil, err
	}
	node := l.Topology.Nodes[0]
	p, err := labPair(l, name, node.Pods[0], node.Pods[1])
	if err != nil {
		return nil, err
	}
	p.agent = agent.NewClient(l.Socket(node.Name))
	if o.KeepAwake != "" {
		p.only = "rr" // elsewhere it changes nothing
	}
	if o.Offload == agent.OffloadAuto {
		p.warm = offloaded(p.agent)
	}
	return p, nil
}

// offloadPatience is how long a stream may take to become the kernel's.
const offloadPatience = 10 * time.Second

// offloaded waits until an agent has given so many connections to the kernel.
func offloaded(a *agent.Client) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		for end := time.Now().Add(offloadPatience); ; wait(ctx, 5*time.Millisecond) {
			var all []agent.Counter
			if err := errors.Join(a.JSON(ctx, "/cache", nil, &all), ctx.Err()); err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(c agent.Counter) bool { return c.Name == "offload_connections" })
			if i < 0 {
				return errors.New("the agent offloads nothing")
			}
			if all[i].Value >= uint64(n) {
				return nil
			}
			if time.Now().After(end) {
				return fmt.Errorf("%d of %d streams are offloaded after %v", all[i].Value, n, offloadPatience)
			}
		}
	}
}

// labPair is two pods of a lab; the pair's close takes the lab down.
func labPair(l *lab.Lab, name string, client, server lab.Pod) (*podPair, error) {
	from, err := l.Namespace(client.Name)
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	to, err := l.Namespace(server.Name)
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	p := &podPair{name: name, client: from.Do, server: to.Do, address: net.JoinHostPort(server.Address.V4.String(), "80"), close: l.Down}
	for _, a := range l.State.Agents {
		p.switches = append(p.switches, strconv.Itoa(a.Process.PID))
	}
	return p, nil
}
