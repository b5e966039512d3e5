package control

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// policyOnlyObjects put the Node of the stories beside another CNI.
func policyOnlyObjects(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/stories/node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	node, _, _ := strings.Cut(string(text), "\n---\n")
	return strings.NewReplacer(
		"  tunnel: {name: antrea-tun0, ofPort: 1, type: geneve}\n", "  trafficEncapMode: networkPolicyOnly\n  features: {Egress: false, L7NetworkPolicy: false, TrafficControl: false}\n",
		"  proxyAll: true\n", "", "  nodePortAddresses: [192.168.1.1]\n", "",
	).Replace(node)
}

// TestPolicyOnlyByPackets: the IP address of a packet decides where it goes, whatever its MAC address. A
// packet to a Pod of the Node passes the tables of policies; all others go to the Node. Policies hold in both
// directions.
func TestPolicyOnlyByPackets(t *testing.T) {
	w := newWire(t, policyOnlyObjects(t)+`
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: default}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress, Egress]
  ingress: [{from: [{podSelector: {matchLabels: {app: client}}}, {ipBlock: {cidr: 198.51.100.9/32}}], ports: [{protocol: TCP, port: 8080}]}]
  egress: [{to: [{ipBlock: {cidr: 198.51.100.0/24}}], ports: [{protocol: TCP, port: 443}]}]
`)
	w.expect("client-a syn 10.10.0.12:1000 > 10.10.0.11:8080", "web-a syn 10.10.0.12:1000 > 10.10.0.11:8080")
	w.expect("web-a synack 10.10.0.11:8080 > 10.10.0.12:1000", "client-a synack 10.10.0.11:8080 > 10.10.0.12:1000")
	w.expect("client-a syn 10.10.0.12:1001 > 10.10.0.11:22")
	w.expect("gateway syn 198.51.100.9:2000 > 10.10.0.11:8080", "web-a syn 198.51.100.9:2000 > 10.10.0.11:8080")
	w.expect("gateway syn 198.51.100.8:2000 > 10.10.0.11:8080")
	w.expect("web-a syn 10.10.0.11:3000 > 198.51.100.9:443", "gateway syn 10.10.0.11:3000 > 198.51.100.9:443")
	w.expect("web-a syn 10.10.0.11:3001 > 198.51.100.9:80")
	w.expect("client-a syn 10.10.0.12:3002 > 10.10.1.21:80", "gateway syn 10.10.0.12:3002 > 10.10.1.21:80") // of another Node
	w.expect("client-a syn 10.10.0.99:3003 > 10.10.0.11:8080")
	want := "! Node/node-b: installed: trafficEncapMode is networkPolicyOnly: another CNI's routes lead to its Pods\n"
	if got := w.statuses(); !slices.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	side := w.r.NodeSide()
	if len(side.Peers) != 0 || len(side.Pods) != len(w.r.view.here) {
		t.Errorf("the switch wants %+v of the Node", side)
	}
	w.change(nil, []cluster.Key{{Kind: cluster.KindPod, Namespace: "default", Name: "web-a"}})
	if left := w.r.NodeSide(); len(left.Pods) != len(side.Pods)-1 {
		t.Errorf("without web-a, the switch wants %+v of the Node", left)
	}
}
