package examples_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/packet"
)

// The walks of two-nodes/README.md: what is sent, where it arrives, and which
// entries decide. Every connection goes there, back and there again, so that
// replies and translations are walked too.

var walks = []struct {
	name     string
	from     string // the sender
	to       string // destination address and port; port 0 is a ping
	at       string // where the packet arrives; "" if nowhere
	ttl      byte   // the TTL on arrival, of 64
	deciding string // entries that the first packet must take
}{
	{"pod to pod on one Node", "client-a", "10.10.0.24:80", "web-a", 64, "node-a L3Forwarding 200, node-a AntreaPolicyIngressRule 14500"},
	{"ping a web pod", "client-a", "10.10.0.24:0", "web-a", 64, "node-a ConntrackCommit 200"},
	{"ping across Nodes", "client-b", "10.10.0.26:0", "client-a", 62, "node-b L3Forwarding 200, node-a L3Forwarding 200"},
	{"across Nodes", "client-a", "10.10.1.7:8080", "client-b", 62, "node-a IngressSecurityClassifier 200, node-b Classifier 200, node-b ConntrackCommit 200"},
	{"across Nodes, back", "client-b", "10.10.0.26:8080", "client-a", 62, "node-a Classifier 200"},
	{"web to db on one Node", "web-a", "10.10.0.25:3306", "db-a", 64, "node-a AntreaPolicyEgressRule 14500, node-a IngressRule 190"},
	{"web to db across Nodes", "web-b", "10.10.0.25:3306", "db-a", 62, "node-b AntreaPolicyEgressRule 14500, node-a IngressRule 190"},
	{"Service with the endpoint here", "client-a", "10.96.0.24:80", "web-a", 63, "node-a ServiceLB 200, node-a EndpointDNAT 200, node-a AntreaPolicyIngressRule 14500"},
	{"Service with the endpoint there", "client-a", "10.96.1.6:80", "web-b", 62, "node-a EndpointDNAT 200, node-b AntreaPolicyIngressRule 14500"},
	{"hairpin on node-a", "web-a", "10.96.0.24:80", "web-a", 63, "node-a SNATMark 190, node-a SNAT 200, node-a Output 210"},
	{"hairpin on node-b", "web-b", "10.96.1.6:80", "web-b", 63, "node-b SNATMark 190, node-b SNAT 200, node-b Output 210"},
	{"Service without endpoint", "client-a", "10.101.255.29:80", "", 0, "node-a ServiceLB 200, node-a EndpointDNAT 200"},
	{"to the outside", "client-a", "192.168.77.1:80", "gw-a", 64, "node-a L3Forwarding 190, node-a EgressMark 0"},
	{"to the own Node", "client-a", "192.168.77.102:10250", "gw-a", 64, "node-a NodePortMark 200, node-a EgressMark 210"},
	{"to the own gateway", "client-a", "10.10.0.1:10250", "gw-a", 63, "node-a UnSNAT 200, node-a L3Forwarding 210"},
	{"to the peer's gateway", "client-a", "10.10.1.1:10250", "gw-b", 62, "node-b L3Forwarding 210"},
	{"Node to its own web pod", "gw-a", "10.10.0.24:8080", "web-a", 64, "node-a Classifier 210, node-a IngressSecurityClassifier 210"},
	{"Node to its own db pod", "gw-a", "10.10.0.25:22", "db-a", 64, "node-a IngressSecurityClassifier 210"},
	{"Node to the peer's client", "gw-a", "10.10.1.7:8080", "client-b", 63, "node-a L3DecTTL 210"},
	{"Node to the peer's web pod", "gw-a", "10.10.1.6:80", "", 0, "node-b AntreaPolicyIngressRule 14499, node-b IngressMetric 200"},
	{"denied by the Antrea policy", "client-a", "10.10.0.24:8080", "", 0, "node-a AntreaPolicyIngressRule 14499, node-a IngressMetric 200"},
	{"denied across Nodes", "client-b", "10.10.0.24:8080", "", 0, "node-b Output 200, node-a IngressMetric 200"},
	{"denied at a Service", "db-b", "10.96.1.6:80", "", 0, "node-b EndpointDNAT 200, node-b IngressMetric 200"},
	{"isolated by the Kubernetes policy", "client-a", "10.10.0.25:3306", "", 0, "node-a IngressDefaultRule 200"},
	{"isolated: another port", "web-a", "10.10.0.25:22", "", 0, "node-a IngressDefaultRule 200"},
	{"isolated: ping", "client-b", "10.10.1.8:0", "", 0, "node-b IngressDefaultRule 200"},
}

func TestWalks(t *testing.T) { onEachSwitch(t, testWalks) }

func testWalks(t *testing.T, lab *lab) {
	for i, w := range walks {
		t.Run(w.name, func(t *testing.T) {
			first := lab.request(w.from, w.to, uint16(40000+i))
			lab.expectHits(t, nil) // what the walk before has left
			out := lab.carry(t, ends[w.from], first.bytes())
			lab.expectHits(t, strings.Split(w.deciding, ", "))
			if w.at == "" {
				expectNothing(t, out)
				return
			}
			got := expectAt(t, out, ends[w.at])
			if got.ttl != w.ttl {
				t.Errorf("arrived with TTL %d, want %d: %v", got.ttl, w.ttl, got)
			}
			lab.answerAndGoOn(t, first, got, ends[w.from], ends[w.at])
		})
	}
}

// answerAndGoOn sends the answer to what arrived, which must reach the asker from
// the very address it asked, and then a further packet the first way.
func (l *lab) answerAndGoOn(t *testing.T, first, arrived header, asker, at end) {
	t.Helper()
	back := expectAt(t, l.carry(t, at, arrived.back().bytes()), asker)
	if back.src != first.dst || back.dst != first.src {
		t.Errorf("answer came as %v, want %v > %v", back, first.dst, first.src)
	}
	if first.proto == packet.ProtoICMP {
		return
	}
	first.further = true
	again := expectAt(t, l.carry(t, asker, first.bytes()), at)
	if again.src != arrived.src || again.dst != arrived.dst {
		t.Errorf("second packet came as %v, the first as %v", again, arrived)
	}
}

func TestServiceSpreadsOverBothEndpoints(t *testing.T) { onEachSwitch(t, testSpreading) }

func testSpreading(t *testing.T, lab *lab) {
	seen := map[string]int{}
	for i := range 64 {
		out := lab.carry(t, ends["client-a"], lab.request("client-a", "10.105.31.235:80", uint16(41000+i)).bytes())
		if len(out) != 1 {
			t.Fatalf("connection %d left %d times", i, len(out))
		}
		seen[out[0].port]++
	}
	if len(seen) != 2 || seen["web-a"] == 0 || seen["web-b"] == 0 {
		t.Errorf("64 connections went to %v, want some to web-a and some to web-b", seen)
	}
}

func TestSessionAffinityKeepsTheEndpoint(t *testing.T) { onEachSwitch(t, testAffinity) }

func testAffinity(t *testing.T, lab *lab) {
	var first string
	for i := range 16 {
		out := lab.carry(t, ends["client-b"], lab.request("client-b", "10.96.76.15:80", uint16(42000+i)).bytes())
		if len(out) != 1 {
			t.Fatalf("connection %d left %d times", i, len(out))
		}
		if i == 0 {
			first = out[0].port
			lab.expectHits(t, []string{"node-b ServiceLB 190"})
		} else {
			lab.expectHits(t, []string{"node-b SessionAffinity 200"})
		}
		if out[0].port != first {
			t.Fatalf("connection %d went to %s, the first to %s", i, out[0].port, first)
		}
	}
}

func TestForgedFramesAreDropped(t *testing.T) { onEachSwitch(t, testForgedFrames) }

func testForgedFrames(t *testing.T, lab *lab) {
	client, web := ends["client-a"], ends["web-a"]
	withMAC, withAddr := client, client
	withMAC.mac, withAddr.addr = web.mac, web.addr
	forged := func(e end) []byte {
		h := lab.request("client-a", "10.10.0.25:80", 1)
		h.srcMAC, h.src = mac(e.mac), netip.AddrPortFrom(netip.MustParseAddr(e.addr), 1)
		return h.bytes()
	}
	for _, c := range []struct {
		name, drop string
		frame      []byte
	}{
		{"source MAC", "node-a SpoofGuard 0", forged(withMAC)},
		{"source IP", "node-a SpoofGuard 0", forged(withAddr)},
		{"ARP with another MAC", "node-a ARPSpoofGuard 0", withMAC.tells(ends["gw-a"])},
		{"ARP for another IP", "node-a ARPSpoofGuard 0", withAddr.tells(ends["gw-a"])},
	} {
		t.Run(c.name, func(t *testing.T) {
			lab.expectHits(t, nil)
			expectNothing(t, lab.carry(t, client, c.frame))
			lab.expectHits(t, []string{c.drop})
		})
	}
}

func TestARP(t *testing.T) { onEachSwitch(t, testARP) }

func testARP(t *testing.T, lab *lab) {
	client, gw, peer := ends["client-a"], ends["gw-a"], ends["gw-b"]

	flooded := lab.carry(t, client, client.asks(gw.addr))
	if !slices.ContainsFunc(flooded, func(s sent) bool { return s.port == "antrea-gw0" }) {
		t.Errorf("the request for the gateway did not reach it: %v", flooded)
	}
	expectFrame(t, lab.carry(t, gw, gw.tells(client)), client, gw.tells(client))

	peer.mac = virtualMAC
	for _, asker := range []end{client, gw} {
		expectFrame(t, lab.carry(t, asker, asker.asks(peer.addr)), asker, peer.tells(asker))
	}
}

// expectFrame fails unless exactly this frame left by this port alone.
func expectFrame(t *testing.T, out []sent, at end, frame []byte) {
	t.Helper()
	if len(out) != 1 || out[0].port != at.port || !slices.Equal(out[0].frame, frame) {
		t.Errorf("left: %v, want %x by %s", out, frame, at.port)
	}
}

// expectNothing fails when a frame left anywhere.
func expectNothing(t *testing.T, out []sent) {
	t.Helper()
	for _, s := range out {
		t.Errorf("left by %s of %s: %x", s.port, s.node, s.frame)
	}
}

// expectAt fails unless one IPv4 frame arrived, at this end and addressed to it.
func expectAt(t *testing.T, out []sent, at end) header {
	t.Helper()
	if len(out) != 1 || out[0].node != at.node || out[0].port != at.port {
		t.Fatalf("left: %v, want one frame by %s of %s", out, at.port, at.node)
	}
	h := readHeader(t, out[0].frame)
	if h.dstMAC != mac(at.mac) {
		t.Errorf("addressed to %x, want %s: %v", h.dstMAC, at.mac, h)
	}
	return h
}
