package learn

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/rehearsal"
)

// All random choices of a switch are fixed here, and only the sandbox turns the clock. So a
// lesson always goes the same way.
const (
	connections = 4096
	selectSeed  = 7
	beginning   = int64(time.Hour) // of the clock, nanoseconds
)

// Sandbox are a lesson's switches. Only one goroutine may use it.
type Sandbox struct {
	lesson *Lesson
	nodes  []*runningNode
	stage  rehearsal.Nodes
	now    int64
	left   map[string]Leaving // where packets left first, by packet name
	ended  map[string]string  // how packets ended, by packet name
}

// runningNode is a Node with its switch.
type runningNode struct {
	*node
	memory []byte // holds its connections
	ct     *conntrack.Table
	on     rehearsal.Node
}

// Hop is a packet's walk through one switch.
type Hop = rehearsal.Hop

// Leaving is a frame that leaves the sandbox at a port.
type Leaving = rehearsal.Leaving

// Way is the way of a named packet.
type Way struct {
	Packet string
	*rehearsal.Way
}

// NewSandbox makes a lesson's switches from files. Its errors have file and line.
func NewSandbox(l *Lesson, f *Files) (*Sandbox, error) {
	nodes, err := l.nodes(f)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{lesson: l, stage: rehearsal.Nodes{Wires: l.Wires}, now: beginning, left: map[string]Leaving{}, ended: map[string]string{}}
	for _, n := range nodes {
		r := &runningNode{node: n, memory: make([]byte, conntrack.ArenaSize(connections))}
		s.nodes, s.stage.All = append(s.nodes, r), append(s.stage.All, &r.on)
		if err := r.start(s); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", f.path(entriesFile), err), s.Close())
		}
	}
	return s, nil
}

// start starts a Node's switch with the connections in its memory.
func (n *runningNode) start(s *Sandbox) (err error) {
	clock := func() int64 { return s.now }
	n.ct, err = conntrack.Restore(conntrack.Config{
		Now: clock, Max: connections, Timeouts: proto.DefaultTimeouts(), NewRate: -1, Seed: [2]uint64{1, 2},
	}, n.memory, [16]byte{1})
	if err != nil {
		return err
	}
	n.on = rehearsal.Node{Name: n.name, Ports: map[uint32]*memory.Port{}, Outer: n.outer}
	n.on.Tunnel, _ = n.program.Names.PortID(tunnelName)
	if n.on.Switch, err = dataplane.New(dataplane.Config{Conntrack: n.ct, Clock: clock, SelectSeed: selectSeed, Cache: -1}); err != nil {
		return err
	}
	if err := n.on.Switch.Apply(flow.BundleOf(n.program)); err != nil {
		return err
	}
	open := n.program.Names.OpenPorts()
	for _, no := range slices.Sorted(maps.Keys(open)) {
		name := open[no]
		aside := strings.HasPrefix(name, "antrea-tc-") || strings.HasPrefix(name, "antrea-l7-")
		n.on.Ports[no] = memory.New(name, memory.Options{Tunnel: name == tunnelName, Aside: aside})
		if err := n.on.Switch.AddPort(no, n.on.Ports[no]); err != nil {
			return err
		}
	}
	return n.on.Watch()
}

// stop ends a Node's switch. Its connections stay in its memory.
func (n *runningNode) stop() error {
	n.on.Unwatch()
	if n.on.Switch == nil {
		return nil
	}
	return n.on.Switch.Close()
}

// Close ends the switches.
func (s *Sandbox) Close() error {
	var errs []error
	for _, n := range s.nodes {
		errs = append(errs, n.stop())
	}
	return errors.Join(errs...)
}

// Turn turns the clock on, and expires entries and connections.
func (s *Sandbox) Turn(d time.Duration) {
	s.now += int64(d)
	for _, n := range s.nodes {
		n.on.Switch.Expire()
	}
}

// Restart replaces each switch by a new one. If keep is true, it keeps the connections.
func (s *Sandbox) Restart(keep bool) error {
	for _, n := range s.nodes {
		if err := n.stop(); err != nil {
			return err
		}
		if !keep {
			clear(n.memory)
		}
		if err := n.start(s); err != nil {
			return err
		}
	}
	return nil
}

// node is the Node of a name; "" is the first one.
func (s *Sandbox) node(name string) (*runningNode, error) {
	for _, n := range s.nodes {
		if name == "" || n.name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("there is no Node %q here", name)
}

// Send sends a packet and follows it until it leaves or ends. above is added to its client
// port.
func (s *Sandbox) Send(p aPacket, above int) (*Way, error) {
	n, err := s.node(p.node)
	var over *flow.Key
	if before, ok := s.left[p.reply]; p.reply != "" && ok {
		over = turned(before.Frame)
		n, err = s.node(before.Node)
	} else if p.reply != "" {
		return nil, fmt.Errorf("%s answers %s, which did not leave: %s", p.name, p.reply, cmp.Or(s.ended[p.reply], "it was not sent"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.where, err)
	}
	text := p.flow
	if over != nil {
		text = strings.Trim(fmt.Sprintf("in_port=%d,%s", n.number(s.left[p.reply].Port), text), ",")
	}
	frame, port, err := compose(text, n.program.Names, over, above)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.where, err)
	}
	way := &Way{Packet: p.name}
	if way.Way, err = s.stage.Send(&n.on, port, frame); err != nil {
		return nil, fmt.Errorf("%s: %w", p.where, err)
	}
	delete(s.left, p.name)
	s.ended[p.name] = way.Ending()
	if len(way.Left) > 0 {
		s.left[p.name] = way.Left[0]
	}
	return way, nil
}

// number is a port's number by its name.
func (n *runningNode) number(port string) uint32 {
	no, _ := n.program.Names.PortID(port)
	return no
}
