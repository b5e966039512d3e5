package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// Everything that a switch draws by chance is fixed here, and time passes only when
// somebody says so: a lesson goes the same way each time.
const (
	connections = 4096
	selectSeed  = 7
	beginning   = int64(time.Hour) // of the clock: nothing is younger than it
	mostHops    = 12
)

// Sandbox is a lesson's switches. It is for one goroutine.
type Sandbox struct {
	lesson *Lesson
	nodes  []*runningNode
	now    int64
	left   map[string]Leaving // where packets left first, by name
	ended  map[string]string  // what became of packets, by name
}

// runningNode is a Node with its switch.
type runningNode struct {
	*node
	memory []byte // that its connections lie in
	ct     *conntrack.Table
	sw     *dataplane.Switch
	live   *dataplane.LiveTrace
	taken  uint64 // walks
	ports  map[uint32]*memory.Port
}

// Hop is a packet's walk through one switch.
type Hop struct {
	Node  string
	Trace *dataplane.Trace
}

// Leaving is a frame at a port where it leaves the sandbox.
type Leaving struct {
	Node, Port string
	Frame      []byte
	Mark       uint32
	key        flow.Key
}

// Way is all that became of a packet: its walks in order, and where it left.
type Way struct {
	Packet string
	Hops   []Hop
	Via    []string // ports by which it left and came back in
	Left   []Leaving
}

// NewSandbox makes a lesson's switches out of files. The error names file and line
// of what is wrong.
func NewSandbox(l *Lesson, f *Files) (*Sandbox, error) {
	nodes, err := l.nodes(f)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{lesson: l, now: beginning, left: map[string]Leaving{}, ended: map[string]string{}}
	for _, n := range nodes {
		r := &runningNode{node: n, memory: make([]byte, conntrack.ArenaSize(connections))}
		s.nodes = append(s.nodes, r)
		if err := r.start(s); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", f.path(entriesFile), err), s.Close())
		}
	}
	return s, nil
}

// start starts a Node's switch over the connections that its memory holds.
func (n *runningNode) start(s *Sandbox) (err error) {
	clock := func() int64 { return s.now }
	n.ct, err = conntrack.Restore(conntrack.Config{
		Now: clock, Max: connections, Timeouts: conntrack.DefaultTimeouts(), NewRate: -1, Seed: [2]uint64{1, 2},
	}, n.memory, [16]byte{1})
	if err != nil {
		return err
	}
	if n.sw, err = dataplane.New(dataplane.Config{Conntrack: n.ct, Clock: clock, SelectSeed: selectSeed, Cache: -1}); err != nil {
		return err
	}
	if err := n.sw.Apply(dataplane.BundleOf(n.program)); err != nil {
		return err
	}
	n.ports, n.taken = map[uint32]*memory.Port{}, 0
	const last = 0xfeff // OpenFlow 1.0, section 5.2.1: numbers above are reserved
	for no := uint32(1); no <= last; no++ {
		name := n.program.Names.Port(no)
		if name == "" {
			continue
		}
		aside := strings.HasPrefix(name, "antrea-tc-") || strings.HasPrefix(name, "antrea-l7-")
		n.ports[no] = memory.New(name, memory.Options{Tunnel: name == tunnelName, Aside: aside})
		if err := n.sw.AddPort(no, n.ports[no]); err != nil {
			return err
		}
	}
	n.live, err = n.sw.TraceLive(dataplane.LiveRequest{Match: func([]byte, uint32) bool { return true }, Deep: true})
	return err
}

// stop ends a Node's switch. Its connections stay in its memory.
func (n *runningNode) stop() error {
	if n.live != nil {
		n.live.Close()
	}
	if n.sw == nil {
		return nil
	}
	return n.sw.Close()
}

// Close ends the switches.
func (s *Sandbox) Close() error {
	var errs []error
	for _, n := range s.nodes {
		errs = append(errs, n.stop())
	}
	return errors.Join(errs...)
}

// Turn turns the clock on.
func (s *Sandbox) Turn(d time.Duration) {
	s.now += int64(d)
	for _, n := range s.nodes {
		n.sw.Expire()
	}
}

// Restart ends every switch and starts another in its place, with the connections
// of the one before or without.
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

// node is the Node of a name, the first one of none.
func (s *Sandbox) node(name string) (*runningNode, error) {
	for _, n := range s.nodes {
		if name == "" || n.name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("there is no Node %q here", name)
}

// Send sends a packet and follows it until it has left, or is gone. Its client
// port is so much above what it says.
func (s *Sandbox) Send(p aPacket, above int) (*Way, error) {
	n, err := s.node(p.node)
	var over *flow.Key
	if before, ok := s.left[p.reply]; p.reply != "" && ok {
		over = turned(before.Frame, 0)
		n, err = s.node(before.Node)
	} else if p.reply != "" {
		return nil, fmt.Errorf("%s answers %s, which did not come anywhere: %s", p.name, p.reply, cmp.Or(s.ended[p.reply], "it was not sent"))
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
	f := packet.NewFrame(make([]byte, packet.Headroom+len(frame)), nil)
	f.SetBytes(frame)
	if err := s.pass(way, n, port, f); err != nil {
		return nil, fmt.Errorf("%s: %w", p.where, err)
	}
	delete(s.left, p.name)
	s.ended[p.name] = way.Ending()
	if len(way.Left) > 0 {
		s.left[p.name] = way.Left[0]
	}
	return way, nil
}

// number is that of a port by its name.
func (n *runningNode) number(port string) uint32 {
	no, _ := n.program.Names.PortID(port)
	return no
}

// pass gives a Node's switch a frame, and what comes out of it to whoever is next.
func (s *Sandbox) pass(way *Way, n *runningNode, port uint32, f *packet.Frame) error {
	in := n.ports[port]
	if in == nil {
		return fmt.Errorf("%s has no port %d", n.name, port)
	}
	if len(way.Hops) == mostHops {
		return fmt.Errorf("the packet goes in circles: %d switches were passed", mostHops)
	}
	in.Inject(f)
	n.sw.Poll()
	if err := n.take(way); err != nil {
		return err
	}
	for _, no := range slices.Sorted(maps.Keys(n.ports)) {
		for _, out := range n.ports[no].CollectAll() {
			if err := s.onward(way, n, no, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds the walks that a Node's switch has watched.
func (n *runningNode) take(way *Way) error {
	for told := n.live.Counts().Told; n.taken < told; n.taken++ {
		t, err := n.live.Next(context.Background())
		if err != nil {
			return err
		}
		way.Hops = append(way.Hops, Hop{n.name, t})
	}
	return nil
}

// onward leads a frame that left by a port to the other end of the tunnel, back in by
// the port that the lesson's wires lead to, or out of the sandbox.
func (s *Sandbox) onward(way *Way, n *runningNode, port uint32, f *packet.Frame) error {
	name := n.program.Names.Port(port)
	if back := s.lesson.Wires[name]; back != "" {
		way.Via = append(way.Via, name)
		return s.pass(way, n, n.number(back), f)
	}
	if peer := s.at(f.Tunnel.Dst); name == tunnelName && peer != nil {
		f.Tunnel.Src = n.transport
		return s.pass(way, peer, peer.number(tunnelName), f)
	}
	l := Leaving{Node: n.name, Port: name, Frame: slices.Clone(f.Bytes()), Mark: f.Mark}
	flow.Extract(f, 0, &l.key)
	way.Left = append(way.Left, l)
	return nil
}

// at is the Node with an address on the underlay, nil for none.
func (s *Sandbox) at(a netip.Addr) *runningNode {
	for _, n := range s.nodes {
		if a.IsValid() && (n.transport == a || slices.Contains(n.egress, a)) {
			return n
		}
	}
	return nil
}
