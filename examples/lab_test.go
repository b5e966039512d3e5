package examples_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/antrail/antrail/packet"
)

// The lab that the walks are driven through: two switches with node-a's and
// node-b's files, joined at antrea-tun0. The switch is Open vSwitch (ovs_test.go)
// or antrail's own (own_test.go); a test asks for both with onEachSwitch.

// node is a switch that holds one Node's files.
type node interface {
	// send puts a frame in at a port, outer being its outer header if that is
	// the tunnel port, and returns what left by which ports.
	send(t *testing.T, port string, frame []byte, outer packet.Tunnel) []sent
	// hits returns the entries that packets have taken since the last call, as
	// "L3Forwarding 200" (table and priority).
	hits(t *testing.T) []string
}

// sent is a frame that left a Node by a port.
type sent struct {
	node, port string
	frame      []byte
	outer      packet.Tunnel // at the tunnel port, if the switch tells
}

// end is a pod or gateway of the lab.
type end struct{ node, port, mac, addr string }

var ends = map[string]end{
	"client-a": {"node-a", "client-a", "5e:b5:e3:a6:90:b7", "10.10.0.26"},
	"web-a":    {"node-a", "web-a", "fa:b7:53:74:21:a6", "10.10.0.24"},
	"db-a":     {"node-a", "db-a", "36:48:21:a2:9d:b4", "10.10.0.25"},
	"gw-a":     {"node-a", "antrea-gw0", "ba:5e:d1:55:aa:c0", "10.10.0.1"},
	"client-b": {"node-b", "client-b", "5e:b5:e3:a6:91:b7", "10.10.1.7"},
	"web-b":    {"node-b", "web-b", "fa:b7:53:74:22:a6", "10.10.1.6"},
	"db-b":     {"node-b", "db-b", "36:48:21:a2:9e:b4", "10.10.1.8"},
	"gw-b":     {"node-b", "antrea-gw0", "ba:5e:d1:55:ab:c0", "10.10.1.1"},
}

// virtualMAC is the destination of all that enters the tunnel.
const virtualMAC = "aa:bb:cc:dd:ee:ff"

// peers and underlay are the other Node of each, and its address.
var (
	peers    = map[string]string{"node-a": "node-b", "node-b": "node-a"}
	underlay = map[string]netip.Addr{
		"node-a": netip.MustParseAddr("192.168.77.102"),
		"node-b": netip.MustParseAddr("192.168.77.103"),
	}
)

// lab is the two Nodes.
type lab struct{ nodes map[string]node }

// newLab makes the two Nodes; start makes one of the set that it is named.
func newLab[N node](t *testing.T, start func(t *testing.T, set string) N) *lab {
	t.Helper()
	return &lab{map[string]node{
		"node-a": start(t, "two-nodes/node-a"),
		"node-b": start(t, "two-nodes/node-b"),
	}}
}

// onEachSwitch runs a test on a lab of antrail's own switches and on one of Open vSwitch.
// With -short only on the first: TestWalksAreTheSameAsOpenVSwitch compares the two.
func onEachSwitch(t *testing.T, test func(t *testing.T, lab *lab)) {
	t.Run("antrail", func(t *testing.T) { test(t, newLab(t, newOwnNode)) })
	if !testing.Short() {
		t.Run("Open vSwitch", func(t *testing.T) { test(t, newLab(t, newOVSNode)) })
	}
}

// request is the first packet that an end sends to an address: bridged to a pod of
// its own Node, else to the gateway; a Node's own goes where its routes say.
func (l *lab) request(from, to string, sport uint16) header {
	src, dst := ends[from], netip.MustParseAddrPort(to)
	next := l.gateway(src)
	for _, e := range ends {
		if e.node == src.node && e.addr == dst.Addr().String() {
			next = e.mac
		}
	}
	h := header{dstMAC: mac(next), srcMAC: mac(src.mac), ttl: 64, proto: packet.ProtoTCP, dst: dst}
	h.src = netip.AddrPortFrom(netip.MustParseAddr(src.addr), sport)
	if dst.Port() == 0 {
		h.proto = packet.ProtoICMP
	}
	return h
}

// gateway is the MAC address that an end sends to for what is not on its Node.
func (l *lab) gateway(e end) string {
	if e.port == "antrea-gw0" {
		return virtualMAC
	}
	return ends["gw-"+e.node[len("node-"):]].mac
}

// carry sends a frame from an end, takes what enters the tunnel to the other
// Node, and returns what left both elsewhere.
func (l *lab) carry(t *testing.T, from end, frame []byte) []sent {
	t.Helper()
	var arrived []sent
	for _, s := range l.nodes[from.node].send(t, from.port, frame, packet.Tunnel{}) {
		if s.port == "antrea-tun0" {
			arrived = append(arrived, l.tunnel(t, s)...)
		} else {
			arrived = append(arrived, s)
		}
	}
	return arrived
}

// tunnel carries what left by the tunnel port to the other Node. Open vSwitch's
// ports do not tell the outer header; ours must be for that Node.
func (l *lab) tunnel(t *testing.T, s sent) []sent {
	t.Helper()
	peer := peers[s.node]
	want := packet.Tunnel{Dst: underlay[peer]}
	if s.outer != (packet.Tunnel{}) && s.outer != want {
		t.Errorf("%s sends with the outer header %+v, want %+v", s.node, s.outer, want)
	}
	outer := packet.Tunnel{Src: underlay[s.node], Dst: underlay[peer]}
	return l.nodes[peer].send(t, "antrea-tun0", s.frame, outer)
}

// expectHits fails for every entry, "node-a L3Forwarding 200", that no packet has
// taken since the last call.
func (l *lab) expectHits(t *testing.T, entries []string) {
	t.Helper()
	taken := l.taken(t)
	for _, e := range entries {
		if !slices.Contains(taken, e) {
			t.Errorf("no packet took %q; taken: %q", e, taken)
		}
	}
}

// taken returns the entries of both Nodes that packets have taken since the last
// call, sorted.
func (l *lab) taken(t *testing.T) (taken []string) {
	t.Helper()
	for name, n := range l.nodes {
		for _, h := range n.hits(t) {
			taken = append(taken, name+" "+h)
		}
	}
	slices.Sort(taken)
	return taken
}
