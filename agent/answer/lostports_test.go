package answer

import (
	"regexp"
	"slices"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// TestLossReasons: all reasons of pipeline, agent and ports are one list, with
// names of their own and a sentence each.
func TestLossReasons(t *testing.T) {
	names := pipeline.ReasonNames()
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) || len(names) < 50 {
		t.Errorf("%d reasons, %d names", len(names), len(unique))
	}
	form := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	for _, r := range pipeline.LossReasons() {
		if !form.MatchString(r.Name) || len(r.Meaning) < 10 || r.Meaning[len(r.Meaning)-1] != '.' {
			t.Errorf("reason %q: %q", r.Name, r.Meaning)
		}
	}
	for _, want := range []string{"entry", "rejected", "port_tx_ring_full", "port_outer_source_is_not_a_known_node", "port_checksum_of_a_gre_packet_is_wrong"} {
		if !slices.Contains(names, want) {
			t.Errorf("no reason %q", want)
		}
	}
}

// TestDropsAtPorts: frames that a port drops are one record: their number, the last of
// them, and its Pods.
func TestDropsAtPorts(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	if err := n.ports[nodeTap].Close(); err != nil {
		t.Fatal(err)
	}
	n.noDrops(t, "port_port_is_closed")
	for range 3 {
		n.send(t, nodeClient, clientSYN(func(o *packettest.Options) { o.Dst = podAddress(t, n, "default/web-a"); o.EthDst = webMAC }), packet.Tunnel{}, nodeTunnel)
	}
	p := n.lastDrops(t, api.DropQuery{Reason: "port_port_is_closed"})
	if p.Packets != 3 || p.Port.Name != "antrea-tc-tap0" || p.Summary() != "3 packets, the last one tcp 10.10.0.26:1000 > 10.10.0.24:80 syn (default/web-a) sent by default/client-a" || p.From() != "to antrea-tc-tap0" {
		t.Errorf("%d packets of %+v: %s", p.Packets, p.Port, p.Line())
	}
	if all := n.Drops.Query(&api.DropQuery{Reason: p.Reason}); len(all.Packets) != 1 {
		t.Errorf("told %d times", len(all.Packets))
	}
}

// nodeTap is the port to which a TrafficControl redirects what is for web-a.
const nodeTap = 34

// webMAC is web-a's.
var webMAC = [6]byte{0xfa, 0xb7, 0x53, 0x74, 0x21, 0xa6}

func (n *watchedNode) noDrops(t *testing.T, reason string) {
	t.Helper()
	if all := n.Drops.Query(&api.DropQuery{Reason: reason}); len(all.Packets) != 0 {
		t.Errorf("%d packets were lost for %s", len(all.Packets), reason)
	}
}

// TestDropsToTheAgent: a packet to a Service without endpoints has a record that names the
// Service, and the entry that sent the packet to the agent.
func TestDropsToTheAgent(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	n.send(t, nodeClient, syn("10.101.255.29", 1000), packet.Tunnel{}, nodeTunnel)
	all := n.Drops.Query(&api.DropQuery{Reason: "no_endpoint"})
	if len(all.Packets) != 1 {
		t.Fatalf("%d packets", len(all.Packets))
	}
	p := all.Packets[0]
	if p.Object() != "Service/default/sample-clusterip-no-ep" || p.Entry == nil || p.Table != "EndpointDNAT" || p.Port.Pod != "default/client-a" || p.CT == nil {
		t.Errorf("%+v", p)
	}
}
