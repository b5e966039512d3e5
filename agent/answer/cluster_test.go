package answer

import (
	"bytes"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports/memory"
)

// testCluster is the two Nodes of examples/web-app with ports in memory: what one
// sends into its tunnel comes out of the other's.
type testCluster struct {
	*testing.T
	dir   string
	nodes []*memoryNode
	// macs and gateways are by pod.
	macs, gateways map[string][6]byte
}

type memoryNode struct {
	*Answers
	name    string
	address netip.Addr
	ports   map[string]*memory.Port
	tunnel  *memory.Port
	log     bytes.Buffer // of policies
}

// arrival is a frame that left by a pod's or gateway's port.
type arrival struct {
	at    string // web-a; node-a for its gateway
	frame []byte
}

// newCluster makes the Nodes, with more objects.
func newCluster(t *testing.T, yaml string) *testCluster {
	t.Helper()
	c := &testCluster{T: t, dir: t.TempDir(), macs: map[string][6]byte{}, gateways: map[string][6]byte{}}
	if err := os.CopyFS(c.dir, os.DirFS("../../examples/web-app")); err != nil {
		t.Fatal(err)
	}
	// Only the policies that leave room for those of a test.
	policies, err := os.ReadFile("../../examples/two-nodes/objects/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.write("policies.yaml", string(policies))
	c.write("more.yaml", yaml)
	for _, name := range []string{"node-a", "node-b"} {
		c.nodes = append(c.nodes, c.load(name))
	}
	return c
}

func (c *testCluster) write(name, text string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
}

// load makes one Node's switch.
func (c *testCluster) load(name string) *memoryNode {
	c.Helper()
	m := pipeline.Manifests{Path: c.dir, Node: name}
	p, err := m.Load(pipeline.Options{})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		if err := p.Switch.PacketCounters().Check(); err != nil {
			c.Error(err)
		}
		p.Local.Close()
	})
	cluster, err := m.Cluster(nil)
	if err != nil {
		c.Fatal(err)
	}
	n := &memoryNode{Answers: New(p), name: name, address: cluster.Node(name).Addresses[0], ports: map[string]*memory.Port{}}
	p.Packets.Audit = packetin.NewAudit(&n.log, p.Objects, 100, slog.New(slog.DiscardHandler))
	config := cluster.NodeConfig(name)
	numbers := map[uint32]string{config.Gateway.OFPort: name}
	c.macs[name] = config.Gateway.MAC
	for _, port := range config.Ports {
		numbers[port.OFPort] = port.Name
		c.macs[port.Name], c.gateways[port.Name] = port.MAC, config.Gateway.MAC
	}
	for no, name := range numbers {
		n.ports[name] = c.addPort(n, no, memory.New(name, memory.Options{}))
	}
	n.tunnel = c.addPort(n, config.Tunnel.OFPort, memory.New("tunnel", memory.Options{Tunnel: true}))
	return n
}

func (c *testCluster) addPort(n *memoryNode, no uint32, p *memory.Port) *memory.Port {
	c.Helper()
	if err := n.Local.AddPort(no, p); err != nil {
		c.Fatal(err)
	}
	return p
}

// node is the Node that has a port.
func (c *testCluster) node(port string) *memoryNode {
	c.Helper()
	for _, n := range c.nodes {
		if n.ports[port] != nil {
			return n
		}
	}
	c.Fatalf("no Node has a port %q", port)
	return nil
}

// send has a pod, or a Node by its gateway, send a frame, and returns all that
// arrives anywhere because of it.
func (c *testCluster) send(from string, frame []byte) (all []arrival) {
	c.Helper()
	if err := c.node(from).ports[from].Send(frame); err != nil {
		c.Fatal(err)
	}
	for busy := true; busy; {
		busy = false
		for _, n := range c.nodes {
			n.Local.Poll()
			for _, f := range n.tunnel.CollectAll() {
				c.carry(n, f)
				busy = true
			}
		}
	}
	for _, n := range c.nodes {
		for _, name := range slices.Sorted(maps.Keys(n.ports)) {
			for _, f := range n.ports[name].CollectAll() {
				all = append(all, arrival{name, f.Bytes()})
			}
		}
	}
	return all
}

// carry brings a frame to the Node that its tunnel leads to.
func (c *testCluster) carry(from *memoryNode, f *packet.Frame) {
	c.Helper()
	for _, to := range c.nodes {
		if to.address == f.Tunnel.Dst {
			in := packet.NewFrame(make([]byte, packet.Headroom+f.Len()), nil)
			in.SetBytes(f.Bytes())
			in.Tunnel = packet.Tunnel{Src: from.address, Dst: to.address}
			to.tunnel.Inject(in)
			return
		}
	}
	c.Fatalf("%s sends into the tunnel to %v, which is no Node", from.name, f.Tunnel.Dst)
}

// logged are the lines that a Node's log of policies got since last asked.
func (n *memoryNode) logged() (lines []string) {
	n.Packets.Audit.Flush()
	for line := range strings.Lines(n.log.String()) {
		lines = append(lines, strings.TrimSpace(line))
	}
	n.log.Reset()
	return lines
}
