package agent

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
)

// underlayNode is a Node whose pods are on the underlay, pod-b in VLAN 2. MAC addresses are
// filled in: those of host0 and of the pods.
const underlayNode = `
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: node-a}
spec:
  gateway: {name: antrea-gw0, ofPort: 2, mac: "0a:00:0a:0a:00:01", ips: [10.10.0.1]}
  trafficEncapMode: noEncap
  features: {AntreaIPAM: true, Egress: false, L7NetworkPolicy: false, TrafficControl: false}
  ports:
  - {name: uplink, ofPort: 3, role: uplink}
  - {name: br-int, ofPort: 4, role: bridge, mac: %q}
  - {name: pod-a, ofPort: 5, pod: default/pod-a, mac: %q}
  - {name: pod-b, ofPort: 6, pod: default/pod-b, mac: %q, vlan: 2}
---
apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {podCIDRs: [10.10.0.0/24]}
status: {addresses: [{type: InternalIP, address: 192.0.2.10}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: v1
kind: Pod
metadata: {name: pod-a, namespace: default}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 192.0.2.50}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pod-b, namespace: default}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 198.51.100.50}]}
`

const underlayAgent = `
nodeName: node-a
manifests: %s
gateway: {mac: "0a:00:0a:0a:00:01", addresses: [10.10.0.1/24]}
tunnel: {localAddress: 192.0.2.10}
trafficEncapMode: noEncap
podCIDRs: [10.10.0.0/24]
masquerade: false
`

// fabricAgent is a switch of the underlay: port 1 is a trunk with VLAN 2, port 2 has no VLAN,
// port 3 has VLAN 2 without tags.
const fabricAgent = `
nodeName: fabric
flows: %s
gateway: {mac: "0a:00:0a:0b:00:01", addresses: [10.11.0.1/24]}
tunnel: {localAddress: 203.0.113.1}
podCIDRs: [10.11.0.0/24]
masquerade: false
ports:
- {name: trunk, ofPort: 10}
- {name: plain, ofPort: 11}
- {name: vlan2, ofPort: 12}
`

const fabricFlows = `
table=0,priority=2,in_port=10,dl_vlan=2 actions=pop_vlan,output:12
table=0,priority=1,in_port=10,vlan_tci=0/0x1000 actions=output:11
table=0,priority=1,in_port=11 actions=output:10
table=0,priority=1,in_port=12 actions=push_vlan:0x8100,set_field:4098->vlan_vid,output:10
`

// textFile puts text into a file of a directory of its own.
func textFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	writeFile(t, path, text)
	return path
}

// startText starts an agent with a configuration.
func startText(t *testing.T, n *nstest.Namespace, text string) (*config.Config, *process) {
	t.Helper()
	c, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c.Socket = filepath.Join(t.TempDir(), "agent.sock")
	p := startProcess(t, n, c)
	wantReady(t, c)
	return c, p
}

// TestAgentOnUnderlay is A-W12 with real sockets: strangers and pods of the underlay reach each
// other without translation, in a VLAN too, and the Node's own connections pass. Nothing is
// known of anybody's MAC address before, so ARP passes too.
func TestAgentOnUnderlay(t *testing.T) {
	node, a, b, fabric, outside := nstest.New(t), nstest.New(t), nstest.New(t), nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "uplink", fabric, "trunk")
	nstest.AddVeth(t, outside, "eth0", fabric, "plain")
	nstest.AddVeth(t, outside, "eth2", fabric, "vlan2")
	nstest.AddVeth(t, node, "br-int", node, "host0")
	nstest.AddVeth(t, node, "pod-a", a, "eth-a")
	nstest.AddVeth(t, node, "pod-b", b, "eth-b")
	for _, link := range []string{"uplink", "br-int", "host0", "pod-a", "pod-b", "lo"} {
		node.SetUp(t, link)
	}
	for _, x := range []struct {
		n          *nstest.Namespace
		link, cidr string
	}{{a, "eth-a", "192.0.2.50/24"}, {b, "eth-b", "198.51.100.50/24"}, {outside, "eth0", "192.0.2.1/24"}, {outside, "eth2", "198.51.100.1/24"}} {
		x.n.SetUp(t, x.link)
		x.n.AddAddress(t, x.link, x.cidr)
	}
	for _, link := range []string{"trunk", "plain", "vlan2", "lo"} {
		fabric.SetUp(t, link)
	}
	fabric.AddAddress(t, "lo", "203.0.113.1/32")
	node.AddAddress(t, "host0", "192.0.2.10/24")

	// Links of one name have one MAC address here, so those of pods have names of their own.
	macOf := func(n *nstest.Namespace, link string) net.HardwareAddr { return n.Link(t, link).Attrs().HardwareAddr }
	manifest := textFile(t, "node.yaml", fmt.Sprintf(underlayNode, macOf(node, "host0"), macOf(a, "eth-a"), macOf(b, "eth-b")))
	_, underlay := startText(t, fabric, fmt.Sprintf(fabricAgent, textFile(t, "fabric.flows", fabricFlows)))
	c, p := startText(t, node, fmt.Sprintf(underlayAgent, filepath.Dir(manifest)))
	for _, x := range []struct {
		from, to  *nstest.Namespace
		at, comes string
	}{
		{a, outside, "192.0.2.1:8080", "192.0.2.50"},
		{outside, a, "192.0.2.50:8080", "192.0.2.1"},
		{b, outside, "198.51.100.1:8080", "198.51.100.50"},
		{outside, b, "198.51.100.50:8080", "198.51.100.1"},
		{node, a, "192.0.2.50:8081", "192.0.2.10"},
		{a, node, "192.0.2.10:8081", "192.0.2.50"},
		{node, outside, "192.0.2.1:8082", "192.0.2.10"},
		{outside, node, "192.0.2.10:8082", "192.0.2.1"},
	} {
		if seen := exchange(t, x.from, x.to, x.at); seen.Addr().String() != x.comes {
			t.Errorf("%s saw %v, want %s", x.at, seen, x.comes)
		}
	}
	for _, zone := range []string{"zone=4096", "zone=4098"} { // 0x1000 and the VLAN
		if text := askText(t, c, "/conntrack"); !strings.Contains(text, zone) {
			t.Errorf("no connection has %s:\n%s", zone, text)
		}
	}
	p.stop(t)
	underlay.stop(t)
}
