package demo

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// dropping are further objects, for drops of every kind.
const dropping = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: refuse}
spec:
  priority: 1
  tier: securityops
  appliedTo: [{podSelector: {matchLabels: {app: web}}}]
  ingress:
    - {name: NoDebug, action: Reject, ports: [{protocol: TCP, port: 8081}]}
    - {name: NoTelnet, action: Drop, enableLogging: true, ports: [{protocol: TCP, port: 23}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db-is-silent, namespace: default}
spec: {podSelector: {matchLabels: {app: db}}, policyTypes: [Egress]}
`

// dropKind is a kind of drop, and its record in antrail drops.
type dropKind struct {
	name string
	// from is the sender of frames by its link. If datagram is not nil, it sends that to
	// the tunnel of node-a.
	from     string
	frames   [][]byte
	datagram []byte

	node                  string // whose switch loses them; node-a when empty
	reason, table, object string // object is what Object has in it
	entry                 bool   // it names an entry
}

// dropWorld is the example with dropping, little room for connections, and none for
// those over IPv6.
func dropWorld(t *testing.T) *world {
	t.Helper()
	dir := exampleAnd(t, nil, dropping)
	const zone6 = 65510
	w, err := newWorld(upWith(t, lab.Options{Manifests: dir, Conntrack: config.Conntrack{NewRate: 100, Zones: map[uint16]uint32{zone6: 0}}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.close() })
	return w
}

// frames makes frames between Pods and others of the lab.
type frames struct{ w *world }

// pod is a Pod with the gateway of its Node.
func (f frames) pod(name string) (p lab.Pod, gateway [6]byte) {
	for _, n := range f.w.lab.Topology.Nodes {
		for _, p := range n.Pods {
			if p.Name == name {
				return p, n.GatewayMAC
			}
		}
	}
	panic("no Pod " + name)
}

// between are the options of packets from a Pod to another: by the gateway, unless both are
// on one Node.
func (f frames) between(from, to string) packettest.Options {
	a, gateway := f.pod(from)
	b, other := f.pod(to)
	o := packettest.Options{EthSrc: a.MAC, EthDst: gateway, Src: a.Address.V4, Dst: b.Address.V4, SrcPort: 40000}
	if gateway == other {
		o.EthDst = b.MAC
	}
	return o
}

// tcp is a SYN from one Pod to a port of another, changed.
func (f frames) tcp(from, to string, port uint16, change ...func(*packettest.Options)) []byte {
	o := f.between(from, to)
	o.DstPort = port
	for _, c := range change {
		c(&o)
	}
	return packettest.TCP4(o)
}

// tcp6 is the same over IPv6.
func (f frames) tcp6(from, to string, port uint16, change ...func(*packettest.Options)) []byte {
	o := f.between(from, to)
	a, _ := f.pod(from)
	b, _ := f.pod(to)
	o.DstPort, o.Src, o.Dst = port, a.Address.V6, b.Address.V6
	for _, c := range change {
		c(&o)
	}
	return packettest.TCP6(o)
}

// pieces are the fragments of a UDP datagram from a Pod to another.
func (f frames) pieces(id uint32, n int, cuts ...int) [][]byte {
	o := f.between("client-a", "client-b")
	o.Payload = make([]byte, n)
	return packettest.Split(packettest.UDP4(o), id, cuts...)
}

// burst are SYNs, each of a connection of its own.
func (f frames) burst(n int, from, to string, port uint16) (all [][]byte) {
	for i := range n {
		all = append(all, f.tcp(from, to, port, func(o *packettest.Options) { o.SrcPort = uint16(20000 + i) }))
	}
	return all
}

func setSrc(a string) func(*packettest.Options) {
	return func(o *packettest.Options) { o.Src = netip.MustParseAddr(a) }
}

func setDst(a string) func(*packettest.Options) {
	return func(o *packettest.Options) { o.Dst = netip.MustParseAddr(a) }
}

func one(b []byte) [][]byte { return [][]byte{b} }

// damaged is a frame with one byte of it changed.
func damaged(b []byte, at int, to byte) []byte {
	b[at] = to
	return b
}

// guardKinds are packets with a false sender.
func (f frames) guardKinds() []dropKind {
	c, gateway := f.pod("client-a")
	return []dropKind{
		{name: "forged MAC", frames: one(f.tcp("client-a", "web-a", 80, func(o *packettest.Options) { o.EthSrc = [6]byte{2, 0, 0, 0, 0, 0x66} })),
			reason: "foreign_mac"},
		{name: "forged IPv4 address", frames: one(f.tcp("client-a", "web-a", 80, setSrc("10.10.0.66"))), reason: "entry", table: "SpoofGuard", entry: true},
		{name: "forged IPv6 address", frames: one(f.tcp6("client-a", "web-a", 80, setSrc("fd00:10:10::66"))), reason: "entry", table: "SpoofGuard", entry: true},
		{name: "forged ARP", frames: one(packettest.ARPRequest(packettest.Options{EthSrc: c.MAC, EthDst: gateway, Src: netip.MustParseAddr("10.10.0.66"), Dst: c.Address.V4})),
			reason: "entry", table: "ARPSpoofGuard", entry: true},
		{name: "forged neighbour", frames: one(packettest.NeighborSolicit6(packettest.Options{
			EthSrc: [6]byte{2, 0, 0, 0, 0, 0x66}, EthDst: gateway, Src: c.Address.V6, Dst: netip.MustParseAddr("fd00:10:10::1")})),
			reason: "foreign_mac"},
		{name: "malformed IP header", frames: one(damaged(f.tcp("client-a", "web-a", 80), packet.EthernetLen, 0x43)), reason: "entry", table: "SpoofGuard", entry: true},
	}
}

// policyKinds are packets that policies drop, or that Services have no endpoint for.
func (f frames) policyKinds() []dropKind {
	return []dropKind{
		{name: "no policy allows it in", frames: one(f.tcp("client-a", "db-a", 3306)), reason: "entry", table: "IngressDefaultRule", object: "NetworkPolicy/default/db-from-web", entry: true},
		{name: "no policy allows it out", from: "db-a", frames: one(f.tcp("db-a", "client-a", 5001)), reason: "entry", table: "EgressDefaultRule", object: "NetworkPolicy/default/db-is-silent", entry: true},
		{name: "dropped on its way in", frames: one(f.tcp("client-a", "web-a", 443)), reason: "entry", table: "IngressMetric", object: "ClusterNetworkPolicy/web-app-db-network-policy (DropOther)", entry: true},
		{name: "dropped on its way out", from: "web-a", frames: one(f.tcp("web-a", "client-a", 5001)), reason: "entry", table: "EgressMetric", object: "ClusterNetworkPolicy/web-app-db-network-policy (DropOtherOut)", entry: true},
		{name: "rejected", frames: one(f.tcp("client-a", "web-a", 8081)), reason: "rejected", table: "Output", object: "ClusterNetworkPolicy/refuse (NoDebug)", entry: true},
		{name: "dropped and logged", frames: one(f.tcp("client-a", "web-a", 23)), reason: "dropped_and_logged", table: "Output", object: "ClusterNetworkPolicy/refuse (NoTelnet)", entry: true},
		{name: "Service without endpoints", frames: one(f.tcp("client-a", "client-b", 80, setDst("10.101.255.29"))), reason: "no_endpoint", table: "EndpointDNAT", object: "Service/default/", entry: true},
	}
}

// trackKinds are packets that conntrack has no room for, or that follow their connection's
// end.
func (f frames) trackKinds() []dropKind {
	shape, overlap, twice := f.pieces(1, 800, 200), f.pieces(2, 1200, 400, 800), f.pieces(3, 1200, 400)
	other := f.pieces(2, 1200, 392, 792)
	return []dropKind{
		{name: "a fragment whose others do not come", frames: f.pieces(9, 1200, 400)[:1], reason: "frag_expired", table: "ConntrackZone", entry: true},
		{name: "invalid for conntrack", frames: one(f.tcp("client-a", "web-a", 80, func(o *packettest.Options) { o.TCPFlags = packet.TCPSyn | packet.TCPFin })),
			reason: "entry", table: "ConntrackState", entry: true},
		{name: "TTL", frames: one(f.tcp("client-a", "client-b", 5001, func(o *packettest.Options) { o.TTL = 1 })), reason: "ttl", table: "L3DecTTL", entry: true},
		{name: "no room in the zone", frames: one(f.tcp6("client-a", "web-a", 80)), reason: "ct_zone_full", table: "AntreaPolicyIngressRule", object: "(AllowFromClient)", entry: true},
		{name: "too many new connections", from: "client-b", frames: f.burst(400, "client-b", "web-b", 80), node: "node-b", reason: "ct_new_rate", table: "AntreaPolicyIngressRule", object: "(AllowFromClient)", entry: true},
		{name: "a fragment too small", frames: shape[:1], reason: "frag_shape", table: "ConntrackZone", entry: true},
		{name: "fragments that overlap", frames: [][]byte{overlap[0], other[1]}, reason: "frag_overlap", table: "ConntrackZone", entry: true},
		{name: "the same fragment twice", frames: [][]byte{twice[0], twice[0]}, reason: "frag_duplicate", table: "ConntrackZone", entry: true},
	}
}

// tunnelKinds are packets that the tunnel refuses.
func (f frames) tunnelKinds() []dropKind {
	geneve := func(first, second byte, protocol uint16, n int) []byte {
		return append([]byte{first, second, byte(protocol >> 8), byte(protocol), 0, 0, 0, 0}, make([]byte, n)...)
	}
	return []dropKind{
		{name: "tunnel packet from nobody known", from: "outside", datagram: geneve(0, 0, 0x6558, 60), reason: "port_outer_source_is_not_a_known_node"},
		{name: "tunnel packet too short", from: "node-b", datagram: []byte{0, 0, 0}, reason: "port_packet_from_the_tunnel_is_shorter_than_the_tunnels_header"},
		{name: "tunnel packet of another version", from: "node-b", datagram: geneve(0x40, 0, 0x6558, 60), reason: "port_version_of_the_tunnels_header_is_not_0"},
		{name: "tunnel packet that is no frame", from: "node-b", datagram: geneve(0, 0, 0x0800, 60), reason: "port_payload_of_the_tunnel_is_not_an_ethernet_frame"},
		{name: "tunnel packet with a control message", from: "node-b", datagram: geneve(0, 0x80, 0x6558, 60), reason: "port_geneve_control_message_which_this_node_does_not_answer"},
		{name: "tunnel packet of another network", from: "node-b", datagram: append([]byte{0, 0, 0x65, 0x58, 0, 0, 5, 0}, f.tcp("web-b", "db-a", 3306)...), reason: "port_the_tunnels_virtual_network_is_not_ours"},
		{name: "tunnel packet of this Node's pod", from: "node-b", datagram: append(geneve(0, 0, 0x6558, 0), f.tcp("web-a", "db-a", 3306)...), reason: "port_inner_source_is_in_another_nodes_pod_range"},
	}
}

// TestDropsAreNamed: real packets cause at least twenty kinds of drops. antrail drops names
// each with its table, entry and object. In the end the switches account for every packet.
func TestDropsAreNamed(t *testing.T) {
	t.Parallel()
	w := dropWorld(t)
	f := frames{w}
	var all []dropKind
	for _, kinds := range [][]dropKind{f.trackKinds(), f.guardKinds(), f.policyKinds(), f.tunnelKinds()} {
		all = append(all, kinds...)
	}
	if len(all) < 20 {
		t.Errorf("%d kinds, want 20", len(all))
	}
	since := map[string]uint64{}
	for i := range all {
		k := &all[i]
		if k.from == "" {
			k.from = "client-a"
		}
		if k.node == "" {
			k.node = "node-a"
		}
		since[k.name] = lostSince(t, w, k.node)
		k.send(t, w)
	}
	t.Run("named", func(t *testing.T) {
		for _, k := range all {
			t.Run(k.name, func(t *testing.T) {
				t.Parallel() // how long each takes to be named is logged
				k.wantNamed(t, w, since[k.name])
			})
		}
	})
	if seen, err := accounted(t.Context(), w); err != nil {
		t.Error(err)
	} else {
		t.Log(seen)
	}
}

// lostSince is the number of the last dropped packet until now.
func lostSince(t *testing.T, w *world, node string) uint64 {
	t.Helper()
	l, err := w.agent(node).DroppedPackets(t.Context(), &api.DropQuery{Last: 1})
	if err != nil {
		t.Fatal(err)
	}
	return l.Next
}

// send sends the packets that are to be dropped.
func (k *dropKind) send(t *testing.T, w *world) {
	t.Helper()
	if k.datagram != nil {
		k.sendDatagram(t, w)
		return
	}
	s, err := w.raw(k.from, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, b := range k.frames {
		if err := s.Send(b); err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
	}
}

func (k *dropKind) sendDatagram(t *testing.T, w *world) {
	t.Helper()
	const genevePort = 6081
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(w.lab.Topology.Nodes[0].Address.V4.Addr(), genevePort))
	if err := w.lab.In(k.from, func() error {
		c, err := net.DialUDP("udp4", nil, to)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Write(k.datagram)
		return err
	}); err != nil {
		t.Fatalf("%s: %v", k.name, err)
	}
}

// The limit of polls: a fragment waits for 15 seconds. Polls are counted, not time, because
// a busy machine may hold up a poll for longer.
const (
	looks     = 600
	lookEvery = 50 * time.Millisecond
)

// wantNamed waits until the drop is reported as expected.
func (k *dropKind) wantNamed(t *testing.T, w *world, since uint64) {
	t.Helper()
	q := api.DropQuery{Reason: k.reason, Since: since}
	var got []string
	for range looks {
		time.Sleep(lookEvery)
		l, err := w.agent(k.node).DroppedPackets(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		for i := range l.Packets {
			p := &l.Packets[i]
			if k.names(p) {
				t.Logf("named %v after it was lost: %s", time.Since(p.Time).Round(time.Millisecond), strings.ReplaceAll(p.Line(), "\t", "  "))
				return
			}
			got = append(got, p.Line())
		}
	}
	t.Errorf("no %s in %s by %q; for this reason there are:\n%s", k.reason, k.table, k.object, strings.Join(got[:min(len(got), 5)], "\n"))
}

// names says whether a record is of this kind. It must have bytes, unless a port kept none.
func (k *dropKind) names(p *api.DroppedPacket) bool {
	return (k.table == "" || p.Table == k.table) && strings.Contains(p.Object(), k.object) && (p.Entry != nil) == k.entry && len(p.Frame) > 0
}
