package pods

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/examples"
	"github.com/antrail/antrail/lab"
)

// labCarriers are the ways in which a lab's agents carry frames.
var labCarriers = []lab.Options{
	{Driver: config.DriverAFPacket, Offload: config.OffloadOff},
	{Driver: config.DriverAFPacket, Offload: config.OffloadAuto},
	{Driver: config.DriverAFXDP, Offload: config.OffloadOff},
}

// labOpeners returns openers of labs. Their agents read the entries in dir.
func labOpeners(ctx context.Context, r *rig.Rig, dir string, options ...lab.Options) (list []opener) {
	for _, o := range options {
		list = append(list, opener{labName(&o), func() (*pair, error) { return openLab(ctx, r, dir, o) }})
	}
	return list
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
	if o.Offload == config.OffloadAuto {
		name = "antrail offload"
	}
	if o.KeepAwake != "" {
		name += ", keepAwake " + o.KeepAwake
	}
	return name
}

// openLab opens a lab of one Node with a client and a web server. Policies allow their traffic.
func openLab(ctx context.Context, r *rig.Rig, entries string, o lab.Options) (*pair, error) {
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
	p.agent = api.NewClient(l.Socket(node.Name))
	if o.KeepAwake != "" {
		p.only = "rr" // in other profiles it changes nothing
	}
	if o.Offload == config.OffloadAuto {
		p.waitWarm = waitOffloaded(p.agent)
	}
	return p, nil
}

// offloadTimeout is how long a stream may take to be offloaded to the kernel.
const offloadTimeout = 10 * time.Second

// waitOffloaded returns a function that waits until an agent has offloaded so many connections.
func waitOffloaded(a *api.Client) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		for end := time.Now().Add(offloadTimeout); ; sched.Wait(ctx, 5*time.Millisecond) {
			var all []api.Counter
			if err := errors.Join(a.JSON(ctx, "/cache", nil, &all), ctx.Err()); err != nil {
				return err
			}
			i := slices.IndexFunc(all, func(c api.Counter) bool { return c.Name == "offload_connections" })
			if i < 0 {
				return errors.New("the agent offloads nothing")
			}
			if all[i].Value >= uint64(n) {
				return nil
			}
			if time.Now().After(end) {
				return fmt.Errorf("%d of %d streams are offloaded after %v", all[i].Value, n, offloadTimeout)
			}
		}
	}
}

// labPair is two pods of a lab as a contender. The pair's close takes the lab down, as an error does.
func labPair(l *lab.Lab, name string, client, server lab.Pod) (*pair, error) {
	from, err := l.Namespace(client.Name)
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	to, err := l.Namespace(server.Name)
	if err != nil {
		return nil, errors.Join(err, l.Down())
	}
	p := &pair{name: name, client: from.Do, server: to.Do, address: net.JoinHostPort(server.Address.V4.String(), "80"), close: l.Down}
	for _, a := range l.State.Agents {
		forwards, err := l.SwitchPID(context.Background(), a.Node)
		if err != nil {
			return nil, errors.Join(err, l.Down())
		}
		p.switches = append(p.switches, strconv.Itoa(a.Process.PID), strconv.Itoa(forwards))
	}
	return p, nil
}

// openTwoNodes opens a lab of two Nodes, with a client on one and a web server on the other.
// The driver is that of the tunnel.
func openTwoNodes(ctx context.Context, r *rig.Rig, entries, name string, o lab.Options) (*pair, error) {
	o.Binary, o.StateDir, o.FlowsDir = r.Binary, r.StateDir, entries+"/two-nodes"
	o.Driver, o.UnderlayOffloads, o.Transient = config.DriverAFPacket, true, true
	l, err := lab.Up(ctx, o)
	if err != nil {
		return nil, err
	}
	return labPair(l, name, l.Topology.Nodes[0].Pods[0], l.Topology.Nodes[1].Pods[0])
}
