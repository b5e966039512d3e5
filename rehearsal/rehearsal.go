// Package rehearsal is Nodes without their machines: switches whose ports are in memory,
// joined by their tunnel ports and by wires, and each packet followed through all of
// them. The lessons (package learn) and the book's walks (package agent, for docs/book)
// are made on it.
//
// The switches are those that carry traffic (package dataplane). Who makes them gives
// them a clock and seeds of its own, so that the same packets in the same order go the
// same way each time. Nothing here asks a kernel for anything, or starts a goroutine.
package rehearsal

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// mostHops bounds the switches that one packet comes to.
const mostHops = 12

// Node is a Node's switch. Its ports have to be in memory.
type Node struct {
	Name   string
	Switch *dataplane.Switch
	Ports  map[uint32]*memory.Port // by number; those of the switch
	Tunnel uint32                  // number of the tunnel port; 0 for none
	// Outer are the addresses on the underlay that lead to the tunnel port: the Node's
	// own, which it sends from, and then those of Egresses.
	Outer []netip.Addr

	live  *dataplane.LiveTrace
	taken uint64 // walks
}

// Watch begins to watch the packets of the switch; a packet that is sent before has no
// walk.
func (n *Node) Watch() (err error) {
	n.taken = 0
	n.live, err = n.Switch.TraceLive(dataplane.LiveRequest{Match: func([]byte, uint32) bool { return true }, Deep: true})
	return err
}

// Unwatch ends it. The switch is closed by who made it.
func (n *Node) Unwatch() {
	if n.live != nil {
		n.live.Close()
		n.live = nil
	}
}

// Nodes are those of a rehearsal. They are for one goroutine.
type Nodes struct {
	All []*Node
	// Wires lead what leaves a Node by a port back in by another of its ports, as a
	// firewall does that lets all pass. Names of ports.
	Wires map[string]string
}

// Hop is a packet's walk through one switch.
type Hop struct {
	Node  string
	Trace *telemetry.Trace
}

// Leaving is a frame at the port where it left the Nodes.
type Leaving struct {
	Node, Port string
	Frame      []byte
	Mark       uint32 // pkt_mark
}

// Way is all that became of a packet: its walks in order, the wires that it took, by
// the port where it left, and where it left the Nodes.
type Way struct {
	Hops []Hop
	Via  []string
	Left []Leaving
}

// Send gives a Node a frame at a port, and follows it until it has left or is gone.
func (s *Nodes) Send(n *Node, port uint32, frame []byte) (*Way, error) {
	f := packet.NewFrame(make([]byte, packet.Headroom+len(frame)), nil)
	f.SetBytes(frame)
	way := &Way{}
	return way, s.pass(way, n, port, f)
}

// pass gives a switch a frame, and what comes out of it to whoever is next.
func (s *Nodes) pass(way *Way, n *Node, port uint32, f *packet.Frame) error {
	in := n.Ports[port]
	if in == nil {
		return fmt.Errorf("%s has no port %d", n.Name, port)
	}
	if len(way.Hops) >= mostHops {
		return fmt.Errorf("the packet goes in circles: %d switches were passed", mostHops)
	}
	in.Inject(f)
	n.Switch.Poll()
	if err := n.takeWalks(way); err != nil {
		return err
	}
	for _, no := range slices.Sorted(maps.Keys(n.Ports)) {
		for _, out := range n.Ports[no].CollectAll() {
			if err := s.onward(way, n, no, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeWalks adds the walks that a switch has watched.
func (n *Node) takeWalks(way *Way) error {
	for told := n.live.Counts().Told; n.taken < told; n.taken++ {
		t, err := n.live.Next(context.Background())
		if err != nil {
			return err
		}
		way.Hops = append(way.Hops, Hop{n.Name, t})
	}
	return nil
}

// onward leads a frame that left by a port along a wire, to the other end of the tunnel,
// or out.
func (s *Nodes) onward(way *Way, n *Node, port uint32, f *packet.Frame) error {
	names := n.Switch.Names()
	name := names.Port(port)
	if back, ok := names.PortID(s.Wires[name]); ok {
		way.Via = append(way.Via, name)
		return s.pass(way, n, back, f)
	}
	if peer := s.at(f.Tunnel.Dst); port == n.Tunnel && peer != nil && len(n.Outer) > 0 {
		f.Tunnel.Src = n.Outer[0]
		return s.pass(way, peer, peer.Tunnel, f)
	}
	way.Left = append(way.Left, Leaving{n.Name, name, slices.Clone(f.Bytes()), f.Mark})
	return nil
}

// at is the Node whose tunnel port an address on the underlay leads to, nil for none.
func (s *Nodes) at(a netip.Addr) *Node {
	i := slices.IndexFunc(s.All, func(n *Node) bool { return a.IsValid() && slices.Contains(n.Outer, a) })
	if i < 0 {
		return nil
	}
	return s.All[i]
}
