package examples_test

import (
	"net/netip"
	"slices"
	"testing"
)

// Where and why frames are lost, as an operator sees it in the counters. Open
// vSwitch counts no reasons, so these run on our own switch only.

// expectLosses fails unless exactly these drops were counted since the last call.
func (l *lab) expectLosses(t *testing.T, losses ...string) {
	t.Helper()
	var counted []string
	for _, name := range []string{"node-a", "node-b"} {
		for _, d := range l.nodes[name].(*ownNode).drops() {
			counted = append(counted, name+" "+d)
		}
	}
	if !slices.Equal(counted, losses) {
		t.Errorf("drops counted: %q, want %q", counted, losses)
	}
}

func TestLossesAreCountedWhereTheyHappen(t *testing.T) {
	lab := newLab(t, newOwnNode)
	for i, c := range []struct {
		name, from, to string
		ttl            byte
		lost           string
	}{
		{"Node to the peer's web pod", "gw-a", "10.10.1.6:80", 64, "node-b IngressMetric entry"},
		{"denied by the Antrea policy", "client-a", "10.10.0.24:8080", 64, "node-a IngressMetric entry"},
		{"denied across Nodes", "client-b", "10.10.0.24:8080", 64, "node-a IngressMetric entry"},
		{"denied at a Service", "db-b", "10.96.1.6:80", 64, "node-b IngressMetric entry"},
		{"isolated by the Kubernetes policy", "client-a", "10.10.0.25:3306", 64, "node-a IngressDefaultRule entry"},
		{"isolated: ping", "client-b", "10.10.1.8:0", 64, "node-b IngressDefaultRule entry"},
		{"TTL runs out on the first Node", "client-a", "10.10.1.7:80", 1, "node-a L3DecTTL ttl"},
		{"TTL runs out on the second Node", "client-a", "10.10.1.7:80", 2, "node-b L3DecTTL ttl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := lab.request(c.from, c.to, uint16(43000+i))
			h.ttl = c.ttl
			expectNothing(t, lab.carry(t, ends[c.from], h.bytes()))
			lab.expectLosses(t, c.lost)
		})
	}
}

func TestForgedFramesAreCountedUnderTheirGuard(t *testing.T) {
	lab := newLab(t, newOwnNode)
	client, forger := ends["client-a"], ends["client-a"]
	forger.addr = ends["web-a"].addr
	h := lab.request("client-a", "10.10.0.25:80", 1)
	h.src = netip.AddrPortFrom(netip.MustParseAddr(forger.addr), 1)
	expectNothing(t, lab.carry(t, client, h.bytes()))
	lab.expectLosses(t, "node-a SpoofGuard entry")
	expectNothing(t, lab.carry(t, client, forger.tells(ends["gw-a"])))
	lab.expectLosses(t, "node-a ARPSpoofGuard entry")
}

// A packet to a Service without endpoints is not lost: the agent gets it and refuses it.
func TestServiceWithoutEndpointGoesToTheAgent(t *testing.T) {
	lab := newLab(t, newOwnNode)
	n := lab.nodes["node-a"].(*ownNode)
	expectNothing(t, lab.carry(t, ends["client-a"], lab.request("client-a", "10.101.255.29:80", 40000).bytes()))
	lab.expectLosses(t)
	if n.toAgent != 1 {
		t.Errorf("%d packet-ins, want 1", n.toAgent)
	}
}
