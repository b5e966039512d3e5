// Package programtest runs a program (tables/layout) in a switch with ports in memory, for
// tests that send packets through it.
package programtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/rehearsal"
	"github.com/antrail/antrail/tables/layout"
)

// connections is the limit of connections in a test.
const connections = 16384

// Switch runs a program. It is for one goroutine.
type Switch struct {
	*rehearsal.Node
	Conntrack *conntrack.Table
	Names     *flow.Names
	nodes     rehearsal.Nodes
	t         testing.TB
}

// New starts a switch that ends with the test. Floods leave out uplink and bridge.
func New(t testing.TB, p *layout.Program, n *layout.Node) *Switch {
	t.Helper()
	prog, _, err := p.Flow(n)
	if err != nil {
		t.Fatal(err)
	}
	clock := func() int64 { return 1 }
	s := &Switch{t: t, Names: prog.Names}
	s.Conntrack = conntrack.NewTable(conntrack.Config{Now: clock, Max: connections, Timeouts: proto.DefaultTimeouts(), NewRate: -1})
	sw, err := dataplane.New(dataplane.Config{Conntrack: s.Conntrack, Clock: clock, Cache: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := sw.Apply(flow.BundleOf(prog)); err != nil {
		t.Fatal(err)
	}
	s.Node = &rehearsal.Node{Name: "node", Switch: sw, Ports: map[uint32]*memory.Port{}, Tunnel: n.Tunnel.No}
	for _, port := range n.Ports() {
		aside := port.No == n.Uplink.No || port.No == n.Bridge.No
		m := memory.New(port.Name, memory.Options{Tunnel: port.No == n.Tunnel.No, Aside: aside})
		s.Node.Ports[port.No] = m
		if err := sw.AddPort(port.No, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Node.Watch(); err != nil {
		t.Fatal(err)
	}
	s.nodes.All = []*rehearsal.Node{s.Node}
	t.Cleanup(func() {
		s.Node.Unwatch()
		if err := sw.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Send puts a frame into a port of the switch, and returns its outcome.
func (s *Switch) Send(port layout.Port, frame []byte) *rehearsal.Way {
	s.t.Helper()
	way, err := s.nodes.Send(s.Node, port.No, frame)
	if err != nil {
		s.t.Fatal(err)
	}
	return way
}

// Leaves sends a frame that must leave by one port, and returns the frame as it leaves.
func (s *Switch) Leaves(in, out layout.Port, frame []byte) []byte {
	s.t.Helper()
	way := s.Send(in, frame)
	if len(way.Left) != 1 || way.Left[0].Port != out.Name {
		s.t.Fatalf("leaves by %v, want %s\n%s", portsOf(way), out.Name, s.Walk(way))
	}
	return way.Left[0].Frame
}

// Dropped sends a frame that must be dropped, and returns the table where its walk ends.
func (s *Switch) Dropped(in layout.Port, frame []byte) string {
	s.t.Helper()
	way := s.Send(in, frame)
	if len(way.Left) > 0 {
		s.t.Fatalf("leaves by %v, want a drop\n%s", portsOf(way), s.Walk(way))
	}
	return s.Names.Table(way.Hops[len(way.Hops)-1].Trace.Verdict.Table)
}

// Tables returns the tables of a packet's walk, in order.
func (s *Switch) Tables(way *rehearsal.Way) (all []string) {
	for _, hop := range way.Hops {
		for _, step := range hop.Trace.Steps {
			if name := s.Names.Table(step.Table); step.Entry != nil && (len(all) == 0 || all[len(all)-1] != name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Walk returns a packet's walk as text, for messages.
func (s *Switch) Walk(way *rehearsal.Way) string {
	var b strings.Builder
	for _, hop := range way.Hops {
		if err := hop.Trace.WriteText(&b, layout.MarkNames{Names: s.Names}); err != nil {
			s.t.Fatal(err)
		}
	}
	return b.String()
}

func portsOf(way *rehearsal.Way) (all []string) {
	for _, l := range way.Left {
		all = append(all, l.Port)
	}
	slices.Sort(all)
	return all
}
