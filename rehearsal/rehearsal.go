// Package rehearsal runs Nodes in memory. Their switches have ports in memory, joined by tunnel
// ports and by wires. Each packet is followed through all of them. The lessons (package learn)
// and the book's walks (package agent, for docs/book) use it.
//
// The switches are those that carry traffic (package dataplane). The caller gives them a clock
// and seeds, so that the same packets in the same order go the same way each time. The package
// makes no system call for them, and starts no goroutine.
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

// mostHops bounds the switches on a packet's way.
const mostHops = 12

// Node is a Node's switch. All its ports must be in memory.
type Node struct {
	Name   string
	Switch *dataplane.Switch
	Ports  map[uint32]*memory.Port // by number; those of the switch
	Tunnel uint32                  // number of the tunnel port; 0 for none
	// Outer are the underlay addresses of the tunnel port: first the Node's own, which is the
	// source of its packets, then those of Egresses.
	Outer []netip.Addr

	live  *dataplane.LiveTrace
	taken uint64 // walks
}

// Watch starts to record the walks of the switch's packets. Earlier packets have no walk.
func (n *Node) Watch() (err error) {
	n.taken = 0
	n.live, err = n.Switch.TraceLive(dataplane.LiveRequest{Match: func([]byte, uint32) bool { return true }, Deep: true})
	return err
}

// Unwatch ends Watch. The caller closes the switch.
func (n *Node) Unwatch() {
	if n.live != nil {
		n.live.Close()
		n.live = nil
	}
}

// Nodes are the Nodes of a rehearsal. They are for one goroutine.
type Nodes struct {
	All []*Node
	// Wires connect two ports of every Node, by name: what leaves by the first enters by the
	// second. A wire acts as a firewall that lets all pass.
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

// Way is the result of a packet: its walks in order, the ports where it took a wire, and the
// ports where it left.
type Way struct {
	Hops []Hop
	Via  []string
	Left []Leaving
}

// Send gives a Node a frame at a port, and follows it until it has left or was dropped.
func (s *Nodes) Send(n *Node, port uint32, frame []byte) (*Way, error) {
	way := &Way{}
	return way, s.pass(way, n, port, packet.FrameOf(frame))
}

// pass gives a switch a frame, and passes its output on.
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

// takeWalks adds the walks that a switch has recorded.
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

// onward sends a frame that left by a port along a wire, to the other end of the tunnel, or
// out.
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

// at is the Node with an underlay address of the tunnel; nil for none.
func (s *Nodes) at(a netip.Addr) *Node {
	i := slices.IndexFunc(s.All, func(n *Node) bool { return a.IsValid() && slices.Contains(n.Outer, a) })
	if i < 0 {
		return nil
	}
	return s.All[i]
}
