package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/trace"
)

// Rehearsal is Nodes of a cluster without its machines: each Node's switch runs
// the entries of its objects on ports in memory, the tunnel ports are joined,
// and every packet is watched. Packets are real ones: they count, are tracked
// and translated. Nothing is left to chance or to the clock, so that the same
// packets in the same order walk the same way each time. It is for one
// goroutine.
type Rehearsal struct {
	nodes []*rehearsed
	now   int64
	ways  uint64
}

// rehearsed is a Node of it.
type rehearsed struct {
	*pipeline
	name      string
	transport []netip.Addr // on the underlay: the Node's own, then its Egresses'
	tunnel    uint32       // port number
	ports     map[uint32]*memory.Port
	live      *dataplane.LiveTrace
	taken     uint64 // walks
}

// Leaving is a frame at the port where it left the Nodes.
type Leaving struct {
	Node, Port string
	Frame      []byte
}

// Everything that a switch draws by chance, fixed.
const (
	rehearsalSeed  = 7
	rehearsalBegan = int64(time.Hour) // of the clock
	rehearsalStep  = int64(time.Millisecond)
	rehearsalHops  = 12
)

// rehearsalTime is when packets come in, one millisecond after the other.
var rehearsalTime = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Rehearse makes Nodes out of the manifests at a path. What is wrong with one of
// them is an error.
func Rehearse(path string, nodes ...string) (*Rehearsal, error) {
	r := &Rehearsal{now: rehearsalBegan}
	for _, name := range nodes {
		n, err := r.start(path, name)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.nodes = append(r.nodes, n)
	}
	return r, nil
}

// Close ends the switches.
func (r *Rehearsal) Close() error {
	var errs []error
	for _, n := range r.nodes {
		n.live.Close()
		errs = append(errs, n.close())
	}
	return errors.Join(errs...)
}

func (r *Rehearsal) start(path, name string) (*rehearsed, error) {
	var problems []error
	from := Manifests{Path: path, Node: name, Report: func(p control.Problem) { problems = append(problems, &p) }}
	cluster, err := from.cluster(nil)
	if err != nil {
		return nil, err
	}
	config := cluster.NodeConfig(name)
	if config == nil {
		return nil, fmt.Errorf("%s: there is no NodeConfig %s", path, name)
	}
	n := &rehearsed{name: name, transport: slices.Clone(config.TransportIPs), tunnel: config.Tunnel.OFPort}
	for _, e := range cluster.Egresses {
		if e.Node == name && e.Addr.IsValid() {
			n.transport = append(n.transport, e.Addr)
		}
	}
	o := options{clock: func() int64 { return r.now }, seed: rehearsalSeed, secret: [2]uint64{1, 2}, cache: -1, ct: Conntrack{Max: 4096}}
	if n.pipeline, err = from.load(o); err != nil {
		return nil, err
	}
	if err := errors.Join(problems...); err != nil {
		return nil, errors.Join(err, n.close())
	}
	if n.ports, err = n.addMemoryPorts([]string{config.Tunnel.Name}); err == nil {
		n.live, err = n.sw.TraceLive(dataplane.LiveRequest{Match: func([]byte, uint32) bool { return true }, Deep: true})
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// Client asks a Node of the rehearsal, nil when it has none of that name.
func (r *Rehearsal) Client(node string) *Client {
	n := r.node(node)
	if n == nil {
		return nil
	}
	return &Client{socket: node, http: &http.Client{Transport: inProcess{n.routes(registry(n.pipeline))}}}
}

func (r *Rehearsal) node(name string) *rehearsed {
	i := slices.IndexFunc(r.nodes, func(n *rehearsed) bool { return n.name == name })
	if i < 0 {
		return nil
	}
	return r.nodes[i]
}

// Send gives a Node a frame at a port and follows it through all Nodes that it
// comes to. The walks have the packet's number as their id, and times that count
// packets, not how fast this machine is.
func (r *Rehearsal) Send(node, port string, frame []byte) (trace.Joined, []Leaving, error) {
	n := r.node(node)
	if n == nil {
		return nil, nil, fmt.Errorf("there is no Node %q", node)
	}
	no, ok := n.sw.Names().PortID(port)
	if !ok {
		return nil, nil, fmt.Errorf("%s has no port %q", node, port)
	}
	f := packet.NewFrame(make([]byte, packet.Headroom+len(frame)), nil)
	f.SetBytes(frame)
	r.ways++
	r.now += rehearsalStep
	s := &sending{r: r}
	err := s.pass(n, no, f)
	return s.way, s.left, err
}

// sending is a packet on its way.
type sending struct {
	r    *Rehearsal
	way  trace.Joined
	left []Leaving
}

// pass gives a Node's switch a frame, and what comes out to whoever is next.
func (s *sending) pass(n *rehearsed, port uint32, f *packet.Frame) error {
	if len(s.way) == rehearsalHops {
		return fmt.Errorf("the packet goes in circles: %d switches were passed", rehearsalHops)
	}
	n.ports[port].Inject(f)
	n.sw.Poll()
	if err := s.take(n); err != nil {
		return err
	}
	for _, no := range slices.Sorted(maps.Keys(n.ports)) {
		for _, out := range n.ports[no].CollectAll() {
			if err := s.onward(n, no, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds the walks that a Node has watched.
func (s *sending) take(n *rehearsed) error {
	for told := n.live.Counts().Told; n.taken < told; n.taken++ {
		t, err := n.live.Next(context.Background())
		if err != nil {
			return err
		}
		w, err := (&walker{p: n.pipeline, node: n.name}).walk(t)
		if err != nil {
			return err
		}
		w.ID, w.Followed = fmt.Sprintf("%016x", s.r.ways), len(s.way) > 0
		w.Time = rehearsalTime.Add(time.Duration(s.r.now - rehearsalBegan))
		for i := range w.Steps {
			w.Steps[i].AfterNS = 0
		}
		s.way = append(s.way, w)
	}
	return nil
}

// onward leads a frame that left by a port to the other end of the tunnel, or out.
func (s *sending) onward(n *rehearsed, port uint32, f *packet.Frame) error {
	if port == n.tunnel {
		for _, peer := range s.r.nodes {
			if slices.Contains(peer.transport, f.Tunnel.Dst) && len(n.transport) > 0 {
				f.Tunnel.Src = n.transport[0]
				return s.pass(peer, peer.tunnel, f)
			}
		}
	}
	s.left = append(s.left, Leaving{n.name, n.sw.Names().Port(port), slices.Clone(f.Bytes())})
	return nil
}
