package control

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// underlayObjects make client-a a Pod of the underlay, and spare one of the underlay's VLAN 2. tap0 is the Node's
// card, tap1 its own network. web-a has an address of the Node's range.
func underlayObjects(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/stories/node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	node, _, _ := strings.Cut(string(text), "\n---\n")
	node = strings.NewReplacer(
		"  tunnel: {name: antrea-tun0, ofPort: 1, type: geneve}\n", "  trafficEncapMode: noEncap\n  features: {AntreaIPAM: true, Egress: false, L7NetworkPolicy: false, TrafficControl: false}\n",
		`mac: "0a:00:00:00:00:0d"`, `mac: "0a:00:00:00:00:0d", vlan: 2`,
		"ofPort: 21}", "ofPort: 21, role: uplink}",
		"ofPort: 22}", `ofPort: 22, role: bridge, mac: "0a:00:00:00:00:16"}`,
	).Replace(node)
	return node + `
---
apiVersion: v1
kind: Pod
metadata: {name: client-a, namespace: default, labels: {app: client}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 192.168.1.50}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: spare, namespace: default, labels: {app: spare}}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 192.168.1.51}], conditions: [{type: Ready, status: "True"}]}
`
}

// TestUnderlayByPackets: Pods of the underlay and strangers reach each other by the Node's card, each in its
// VLAN, with their own addresses (A-W12). The Node's own packets pass.
func TestUnderlayByPackets(t *testing.T) {
	w := newWire(t, underlayObjects(t))
	both := func(from, a, to, b string, asks, answers string) {
		t.Helper()
		w.expect(from+" "+asks+"syn "+a+" > "+b, to+" "+answers+"syn "+a+" > "+b)
		w.expect(to+" "+answers+"synack "+b+" > "+a, from+" "+asks+"synack "+b+" > "+a)
		w.expect(from+" "+asks+"ack "+a+" > "+b, to+" "+answers+"ack "+a+" > "+b)
	}
	const far, untagged, tagged = "198.51.100.9:80", "192.168.1.50:1000", "192.168.1.51:1000"
	both("client-a", untagged, "tap0", far, "", "")
	both("tap0", "198.51.100.9:2000", "client-a", "192.168.1.50:80", "", "")
	both("spare", tagged, "tap0", far, "", "vlan:2 ")
	both("tap0", "198.51.100.9:2000", "spare", "192.168.1.51:80", "vlan:2 ", "")
	both("tap1", "192.168.1.1:3000", "client-a", "192.168.1.50:80", "", "")
	both("client-a", untagged, "tap1", "192.168.1.1:22", "", "")
	both("client-a", untagged, "web-a", "10.10.0.11:80", "", "")
	both("web-a", "10.10.0.11:4000", "client-a", "192.168.1.50:80", "", "")
	both("tap1", "192.168.1.1:5000", "tap0", far, "", "")
	both("tap0", "198.51.100.9:5000", "tap1", "192.168.1.1:22", "", "")
	// Each VLAN has its own connections, and no way into another or to the Node. These packets have the
	// MAC address of their destination.
	w.expect("tap0 vlan:3 syn 198.51.100.9:7000 > 192.168.1.51:80", "tap1 vlan:3 syn 198.51.100.9:7000 > 192.168.1.51:80")
	w.expect("spare syn 192.168.1.51:1000 > 192.168.1.50:80", "tap0 vlan:2 syn 192.168.1.51:1000 > 192.168.1.50:80")
	w.expect("spare syn 192.168.1.51:1000 > 10.10.0.11:80", "tap0 vlan:2 syn 192.168.1.51:1000 > 10.10.0.11:80")
	w.expect("spare syn 192.168.1.51:1000 > 10.10.0.1:80", "tap0 vlan:2 syn 192.168.1.51:1000 > 10.10.0.1:80")
	w.expect("spare syn 192.168.1.51:1000 > 192.168.1.1:22", "tap0 vlan:2 syn 192.168.1.51:1000 > 192.168.1.1:22")
	w.expect("client-a syn 192.168.1.50:1000 > 192.168.1.51:80", "tap0 syn 192.168.1.50:1000 > 192.168.1.51:80")
	zones := map[uint16]int{}
	for _, z := range w.sw.ct.Zones() {
		zones[z.Zone] = int(z.Count)
	}
	if zones[0x1000] == 0 || zones[0x1002] == 0 || zones[65520] != 0 {
		t.Errorf("connections by zone: %v", zones)
	}
	// A Service's endpoint of the underlay, and a forged source.
	w.put(`
apiVersion: v1
kind: Service
metadata: {name: client, namespace: default}
spec: {type: ClusterIP, clusterIP: 10.96.0.10, selector: {app: client}, ports: [{protocol: TCP, port: 80, targetPort: 80}]}
` + strings.NewReplacer("web", "client", "8080", "80").Replace(slice(`{addresses: [192.168.1.50], nodeName: node-a, conditions: {ready: true}}`)))
	w.expect("web-a syn 10.10.0.11:1001 > 10.96.0.10:80", "client-a syn 10.10.0.11:1001 > 192.168.1.50:80")
	w.expect("client-a synack 192.168.1.50:80 > 10.10.0.11:1001", "web-a synack 10.96.0.10:80 > 10.10.0.11:1001")
	w.expect("client-a syn 192.168.1.51:1000 > 198.51.100.9:80")
}

// TestUnderlayPoliciesByPackets: policies hold for Pods of the underlay in both directions, in
// VLANs too.
func TestUnderlayPoliciesByPackets(t *testing.T) {
	w := newWire(t, underlayObjects(t)+`
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: only-80, namespace: default}
spec:
  podSelector: {}
  policyTypes: [Ingress, Egress]
  ingress: [{ports: [{protocol: TCP, port: 80}], from: [{ipBlock: {cidr: 198.51.100.9/32}}]}]
  egress: [{ports: [{protocol: TCP, port: 81}], to: [{ipBlock: {cidr: 198.51.100.0/24}}]}]
`)
	for pod, c := range map[string][2]string{"client-a": {"192.168.1.50", ""}, "spare": {"192.168.1.51", "vlan:2 "}} {
		addr, tag := c[0], c[1]
		w.expect("tap0 "+tag+"syn 198.51.100.9:2000 > "+addr+":80", pod+" syn 198.51.100.9:2000 > "+addr+":80")
		w.expect(pod+" synack "+addr+":80 > 198.51.100.9:2000", "tap0 "+tag+"synack "+addr+":80 > 198.51.100.9:2000")
		w.expect("tap0 " + tag + "syn 198.51.100.8:2000 > " + addr + ":80")
		w.expect("tap0 " + tag + "syn 198.51.100.9:2001 > " + addr + ":443")
		w.expect(pod+" syn "+addr+":1000 > 198.51.100.8:81", "tap0 "+tag+"syn "+addr+":1000 > 198.51.100.8:81")
		w.expect(pod + " syn " + addr + ":1000 > 198.51.100.8:82")
	}
}

// TestUnderlayVLANOfOwnRange: a Pod in a VLAN that has an address of the Node's own range waits.
func TestUnderlayVLANOfOwnRange(t *testing.T) {
	w := newWire(t, strings.ReplaceAll(underlayObjects(t), "192.168.1.51", "10.10.0.13"))
	const want = "! Pod/default/spare: pending: its port is in VLAN 2 of the underlay, and its address is in the Node's podCIDRs\n"
	if got := w.statuses(); !slices.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w.expect("spare syn 10.10.0.13:1000 > 10.10.0.11:80")
}
