package examples_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/walktest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// ownNode is antrail's switch with one set of files, over memory ports. Its clock
// stands still.
type ownNode struct {
	*dataplane.Switch
	name    string
	ports   []*memory.Port
	toAgent int                      // packet-ins so far
	taken   map[flow.Identity]uint64 // packets by entry at the last call of hits
	lost    map[string]uint64        // packets by table and reason at the last call of drops
}

// newOwnNode makes a switch and loads a set, such as "two-nodes/node-a", into it.
func newOwnNode(t *testing.T, set string) *ownNode {
	t.Helper()
	n := &ownNode{name: filepath.Base(set)}
	clock := func() int64 { return 1e12 }
	var err error
	n.Switch, err = dataplane.New(dataplane.Config{
		Conntrack: conntrack.NewTable(conntrack.Config{Now: clock}), Clock: clock, Cache: walktest.Cache(),
		PacketIn: func(*telemetry.PacketIn) { n.toAgent++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	p := readProgram(t, set)
	if err := n.Apply(flow.BundleOf(p)); err != nil {
		t.Fatal(err)
	}
	n.addPorts(t, p.Names)
	return n
}

// addPorts adds a port for every one that the set names. Port 1 is the tunnel.
func (n *ownNode) addPorts(t *testing.T, names *flow.Names) {
	t.Helper()
	for no := range uint32(64) {
		if names.Port(no) == "" {
			continue
		}
		p := memory.New(names.Port(no), memory.Options{Tunnel: no == 1})
		if err := n.AddPort(no, p); err != nil {
			t.Fatal(err)
		}
		n.ports = append(n.ports, p)
	}
}

// send also sees that no frame vanishes: it leaves, goes to the agent, or is
// counted as dropped, and only one of these.
func (n *ownNode) send(t *testing.T, port string, frame []byte, outer packet.Tunnel) (out []sent) {
	t.Helper()
	agent, dropped := n.toAgent, sum(n.Drops())
	f := packet.FrameOf(frame)
	f.Tunnel = outer
	if n.port(port).Inject(f) != 1 {
		t.Fatalf("%s does not take a frame at %s", n.name, port)
	}
	n.Poll()
	for _, p := range n.ports {
		out = append(out, n.collect(p)...)
	}
	passed, drops := len(out)+n.toAgent-agent, sum(n.Drops())-dropped
	if (passed == 0) != (drops == 1) {
		t.Errorf("%s: a frame left or went to the agent %d times and was dropped %d times", n.name, passed, drops)
	}
	return out
}

func (n *ownNode) port(name string) *memory.Port {
	return n.ports[slices.IndexFunc(n.ports, func(p *memory.Port) bool { return p.Name() == name })]
}

// collect takes what a port has transmitted.
func (n *ownNode) collect(p *memory.Port) (out []sent) {
	for batch := make([]*packet.Frame, 1); p.Collect(batch) == 1; packet.Release(batch) {
		s := sent{node: n.name, port: p.Name(), frame: slices.Clone(batch[0].Bytes())}
		if p.Info().Tunnel {
			s.outer = batch[0].Tunnel
		}
		out = append(out, s)
	}
	return out
}

func (n *ownNode) hits(*testing.T) (taken []string) {
	now, names := map[flow.Identity]uint64{}, n.Names()
	for _, e := range n.Flows() {
		now[e.Identity()] = e.Packets
		if e.Packets > n.taken[e.Identity()] {
			taken = append(taken, fmt.Sprintf("%s %d", names.Table(e.Table), e.Priority))
		}
	}
	n.taken = now
	return taken
}

// drops returns where and why packets were lost since the last call, as
// "SpoofGuard entry" (table and reason).
func (n *ownNode) drops() (lost []string) {
	now := map[string]uint64{}
	for _, table := range n.Tables() {
		for reason, packets := range table.DropsByReason {
			id := table.Name + " " + reason.String()
			now[id] = packets
			if packets > n.lost[id] {
				lost = append(lost, id)
			}
		}
	}
	n.lost = now
	return lost
}

func sum(drops map[telemetry.DropReason]uint64) (n uint64) {
	for _, packets := range drops {
		n += packets
	}
	return n
}
