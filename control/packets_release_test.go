package control

import (
	"strings"
	"testing"
)

// TestReleaseV2ByPackets: with the entries of Antrea's release v2, packets have the same results for Services,
// policies and taps.
func TestReleaseV2ByPackets(t *testing.T) {
	t.Setenv(releaseVariable, "v2")
	for name, test := range map[string]func(*testing.T){
		"ToServices": TestToServicesByPackets, "AppliedToService": TestAppliedToServiceByPackets, "TrafficControl": TestTrafficControlByPackets,
		"Log": TestLogByPackets, "ServiceAddresses": TestServiceAddressesByPackets, "TrafficPolicies": TestTrafficPoliciesByPackets,
		"NoEndpoint": TestNoEndpointByPackets, "SourceRanges": TestSourceRangesByPackets, "DSR": TestDSRByPackets,
		"Conditions": TestConditionsByPackets, "Affinity": TestAffinityByPackets, "LiveConnections": TestLiveConnectionsByPackets,
		"FailClosed": TestFailClosedByPackets, "NewPodOfAnAddress": TestNewPodOfAnAddressByPackets, "L7": TestL7ByPackets,
		"Bandwidth": TestBandwidthByPackets, "PrioritiesMove": TestPrioritiesMoveByPackets,
	} {
		t.Run(name, test)
	}
}

// TestL7OfServiceByPackets: in v2, the engine sees both directions of a Service's
// connection with the Pod's address, whether the client is here or behind the tunnel.
func TestL7OfServiceByPackets(t *testing.T) {
	t.Setenv(releaseVariable, "v2")
	w := newWire(t, l7Feature+l7Policy("GET")+`
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {type: ClusterIP, clusterIP: 10.96.0.10, selector: {app: web}, ports: [{protocol: TCP, port: 80, targetPort: 8030}]}
`)
	const client, service, pod = "10.10.0.12:1000", "10.96.0.10:80", "10.10.0.11:8030"
	for _, kinds := range [][2]string{{"syn ", "synack "}, {"ack ", "ack "}} {
		asks, answers := kinds[0], kinds[1]
		w.expect("client-a "+asks+client+" > "+service, "tap0 vlan:1 "+asks+client+" > "+pod)
		w.expect("tap1 vlan:1 "+asks+client+" > "+pod, "web-a "+asks+client+" > "+pod)
		w.expect("web-a "+answers+pod+" > "+client, "tap0 vlan:1 "+answers+pod+" > "+client)
		w.expect("tap1 vlan:1 "+answers+pod+" > "+client, "client-a "+answers+service+" > "+client)
	}
	const far = "10.10.1.11:1000"
	w.expect("tunnel syn "+far+" > "+pod, "tap0 vlan:1 syn "+far+" > "+pod)
	w.expect("tap1 vlan:1 syn "+far+" > "+pod, "web-a syn "+far+" > "+pod)
	w.expect("web-a synack "+pod+" > "+far, "tap0 vlan:1 synack "+pod+" > "+far)
	w.expect("tap1 vlan:1 synack "+pod+" > "+far, "tunnel(192.168.1.2) synack "+pod+" > "+far)
}

// TestEgressReplyByPackets: in v2 and hybrid mode, replies to a remote Pod with an Egress here go through
// the tunnel. Other packets to that Node do not.
func TestEgressReplyByPackets(t *testing.T) {
	t.Setenv(releaseVariable, "v2")
	w := newWire(t, strings.NewReplacer("  features: {EgressTrafficShaping: true}", "  trafficEncapMode: hybrid\n  transportCIDRs: [192.168.1.0/24]").Replace(shapingFeature)+
		strings.Replace(limitedEgress, ", bandwidth: {rate: 100k, burst: 525k}", "", 1))
	if n := w.egressFromTunnel("10.10.1.11:1000 > 192.0.2.9:80", 1); n != 1 {
		t.Fatalf("%d packets left by the Egress, want 1", n)
	}
	w.expect("gateway udp 192.0.2.9:80 > 10.10.1.11:1000", "tunnel(192.168.1.2) udp 192.0.2.9:80 > 10.10.1.11:1000")
	w.expect("client-a udp 10.10.0.12:1 > 10.10.1.11:80", "gateway udp 10.10.0.12:1 > 10.10.1.11:80")
}
