package answer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/rehearsal"
	"github.com/antrail/antrail/trace"
)

// Rehearsal is Nodes of a cluster in memory (package rehearsal). Each Node's switch runs the
// entries of its objects, and records every packet. Packets are real: they are counted, tracked
// and translated. Clock and random choices are fixed, so that the same packets in the same
// order walk the same way each time. It is for one goroutine.
type Rehearsal struct {
	nodes []*rehearsed
	stage rehearsal.Nodes
	now   int64
	ways  uint64
}

// rehearsed is one Node.
type rehearsed struct {
	*Answers
	on rehearsal.Node
}

// Leaving is a frame at the port where it left the Nodes.
type Leaving = rehearsal.Leaving

// Fixed values of everything that a switch chooses at random.
const (
	rehearsalSeed  = 7
	rehearsalBegan = int64(time.Hour) // the clock at the start
	rehearsalStep  = int64(time.Millisecond)
)

// rehearsalTime is the time of the first packet. Packets follow at intervals of one
// millisecond.
var rehearsalTime = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Rehearse makes Nodes from the manifests at a path. A fault in any manifest is an error.
func Rehearse(path string, nodes ...string) (*Rehearsal, error) {
	r := &Rehearsal{now: rehearsalBegan}
	for _, name := range nodes {
		n, err := r.start(path, name)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.nodes, r.stage.All = append(r.nodes, n), append(r.stage.All, &n.on)
	}
	return r, nil
}

// Wire connects two ports of every Node: what leaves by from enters by to. It acts as a
// firewall that lets all pass.
func (r *Rehearsal) Wire(from, to string) {
	if r.stage.Wires == nil {
		r.stage.Wires = map[string]string{}
	}
	r.stage.Wires[from] = to
}

// Close ends the switches.
func (r *Rehearsal) Close() error {
	var errs []error
	for _, n := range r.nodes {
		n.on.Unwatch()
		errs = append(errs, n.Close())
	}
	return errors.Join(errs...)
}

func (r *Rehearsal) start(path, name string) (*rehearsed, error) {
	var problems []error
	from := pipeline.Manifests{Path: path, Node: name, Report: func(p manifest.Problem) { problems = append(problems, &p) }}
	cluster, err := from.Cluster(nil)
	if err != nil {
		return nil, err
	}
	own := cluster.NodeConfig(name)
	if own == nil {
		return nil, fmt.Errorf("%s: there is no NodeConfig %s", path, name)
	}
	n := &rehearsed{on: rehearsal.Node{Name: name, Tunnel: own.Tunnel.OFPort, Outer: slices.Clone(own.TransportIPs)}}
	for _, e := range cluster.Egresses {
		if e.Node == name && e.Addr.IsValid() {
			n.on.Outer = append(n.on.Outer, e.Addr)
		}
	}
	o := pipeline.Options{Clock: func() int64 { return r.now }, Seed: rehearsalSeed, Secret: [2]uint64{1, 2}, Cache: -1, Conntrack: config.Conntrack{Max: 4096}}
	loaded, err := from.Load(o)
	if err != nil {
		return nil, err
	}
	n.Answers = New(loaded)
	if err := errors.Join(problems...); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.on.Switch = n.Local.Switch
	if n.on.Ports, err = n.addMemoryPorts([]string{own.Tunnel.Name}); err == nil {
		err = n.on.Watch()
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Client returns a client of a Node, or nil if no Node has that name.
func (r *Rehearsal) Client(node string) *api.Client {
	n := r.node(node)
	if n == nil {
		return nil
	}
	return n.Client(node)
}

func (r *Rehearsal) node(name string) *rehearsed {
	i := slices.IndexFunc(r.nodes, func(n *rehearsed) bool { return n.on.Name == name })
	if i < 0 {
		return nil
	}
	return r.nodes[i]
}

// Send gives a Node a frame at a port and follows it through all Nodes. The walks' id is the
// packet's number. Their times count packets, so they do not depend on the machine.
func (r *Rehearsal) Send(node, port string, frame []byte) (trace.Joined, []Leaving, error) {
	n := r.node(node)
	if n == nil {
		return nil, nil, fmt.Errorf("there is no Node %q", node)
	}
	no, ok := n.Switch.Names().PortID(port)
	if !ok {
		return nil, nil, fmt.Errorf("%s has no port %q", node, port)
	}
	r.ways++
	r.now += rehearsalStep
	way, err := r.stage.Send(&n.on, no, frame)
	if err != nil {
		return nil, nil, err
	}
	joined, err := r.joined(way)
	return joined, way.Left, err
}

// joined converts a packet's walks, with their objects.
func (r *Rehearsal) joined(way *rehearsal.Way) (all trace.Joined, err error) {
	for i, h := range way.Hops {
		w, err := (&pipeline.Walker{Pipeline: r.node(h.Node).Pipeline, Node: h.Node}).Walk(h.Trace)
		if err != nil {
			return nil, err
		}
		w.ID, w.Followed = fmt.Sprintf("%016x", r.ways), i > 0
		w.Time = rehearsalTime.Add(time.Duration(r.now - rehearsalBegan))
		for i := range w.Steps {
			w.Steps[i].AfterNS = 0
		}
		all = append(all, w)
	}
	return all, nil
}
