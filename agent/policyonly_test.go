package agent

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
)

// besideNode is a Node whose pods another CNI has made. The MAC addresses of the pods are filled in.
const besideNode = `
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: node-a}
spec:
  gateway: {name: antrea-gw0, ofPort: 2, mac: "0a:00:0a:0a:00:01", ips: [192.0.2.10]}
  trafficEncapMode: networkPolicyOnly
  features: {AntreaProxy: false, Egress: false, L7NetworkPolicy: false, TrafficControl: false}
  ports:
  - {name: pod-a, ofPort: 5, pod: default/pod-a, mac: %q}
  - {name: pod-b, ofPort: 6, pod: default/pod-b, mac: %q}
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
status: {phase: Running, podIPs: [{ip: 10.10.0.11}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pod-b, namespace: default}
spec: {nodeName: node-a, containers: [{name: c, image: x}]}
status: {phase: Running, podIPs: [{ip: 10.10.0.12}]}
`

const besideAgent = `
nodeName: node-a
manifests: %s
gateway: {mac: "0a:00:0a:0a:00:01", addresses: [192.0.2.10/32]}
tunnel: {localAddress: 192.0.2.10}
trafficEncapMode: networkPolicyOnly
podCIDRs: [10.10.0.0/24]
`

const besidePolicy = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: pod-a, namespace: default}
spec:
  podSelector: {}
  policyTypes: [Ingress]
  ingress: [{from: [{ipBlock: {cidr: 192.0.2.1/32}}], ports: [{protocol: TCP, port: 8080}]}]
`

// routedPod attaches a pod as a CNI that routes does: an address of its own, and a next hop that
// no machine has.
func routedPod(t *testing.T, node, pod *nstest.Namespace, link, ip string) {
	t.Helper()
	nstest.AddVeth(t, node, link, pod, "eth0-"+link)
	node.SetUp(t, link)
	pod.SetUp(t, "eth0-"+link)
	pod.AddAddress(t, "eth0-"+link, ip+"/32")
	ip4(t, pod, "route", "add", "default", "via", "169.254.1.1", "dev", "eth0-"+link, "onlink")
	node.Sysctl(t, "net/ipv4/conf/"+link+"/proxy_arp", "1")
	node.Sysctl(t, "net/ipv4/neigh/"+link+"/proxy_delay", "0") // a proxy's answer waits for up to 0.8 s otherwise
	ip4(t, node, "route", "add", ip+"/32", "dev", link)
}

// ip4 runs ip(8) in a namespace.
func ip4(t *testing.T, n *nstest.Namespace, args ...string) string {
	t.Helper()
	out, err := n.Command("ip", append([]string{"-4"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
	return string(out)
}

// TestAgentBesideAnotherCNI: in mode networkPolicyOnly, policies hold for pods that another CNI
// has attached, with real sockets: between pods, from the Node and from the outside. Without the
// agent, the other CNI's routes hold again.
func TestAgentBesideAnotherCNI(t *testing.T) {
	node, a, b, outside := nstest.New(t), nstest.New(t), nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, node, "uplink", outside, "eth0")
	node.SetUp(t, "lo")
	node.SetUp(t, "uplink")
	outside.SetUp(t, "eth0")
	node.AddAddress(t, "uplink", "192.0.2.10/24")
	outside.AddAddress(t, "eth0", "192.0.2.1/24")
	ip4(t, outside, "route", "add", "10.10.0.0/24", "via", "192.0.2.10")
	ip4(t, node, "route", "add", "default", "via", "192.0.2.1")
	node.Sysctl(t, "net/ipv4/ip_forward", "1")
	routedPod(t, node, a, "pod-a", "10.10.0.11")
	routedPod(t, node, b, "pod-b", "10.10.0.12")
	exchange(t, outside, a, "10.10.0.11:8081")

	macOf := func(n *nstest.Namespace, link string) net.HardwareAddr { return n.Link(t, link).Attrs().HardwareAddr }
	manifests := t.TempDir()
	writeFile(t, filepath.Join(manifests, "node.yaml"), fmt.Sprintf(besideNode, macOf(a, "eth0-pod-a"), macOf(b, "eth0-pod-b")))
	_, p := startText(t, node, fmt.Sprintf(besideAgent, manifests))
	for _, x := range []struct {
		from, to *nstest.Namespace
		at, says string
	}{
		{outside, a, "10.10.0.11:8081", "192.0.2.1"},
		{a, outside, "192.0.2.1:8082", "10.10.0.11"},
		{a, b, "10.10.0.12:8083", "10.10.0.11"},
		{node, b, "10.10.0.12:8084", "192.0.2.10"},
		{b, node, "192.0.2.10:8085", "10.10.0.12"},
	} {
		if seen := exchange(t, x.from, x.to, x.at); seen.Addr().String() != x.says {
			t.Errorf("%s saw %v, want %s", x.at, seen, x.says)
		}
	}

	writeFile(t, filepath.Join(manifests, "policy.yaml"), besidePolicy)
	listenAt(t, a, "10.10.0.11:8081")
	listenAt(t, b, "10.10.0.12:8080")
	var silence net.Error
	nstest.Until(t, "the policy is in force", func() bool {
		err := dialFrom(t, outside, "", "10.10.0.11:8081")
		return errors.As(err, &silence) && silence.Timeout()
	})
	exchange(t, outside, a, "10.10.0.11:8080")
	if err := dialFrom(t, a, "", "10.10.0.12:8080"); err == nil {
		t.Error("a pod reaches another one that the policy isolates")
	}
	if out := ip4(t, node, "route", "get", "10.10.0.11"); !strings.Contains(out, "dev antrea-gw0") {
		t.Errorf("the Node's way to the pod: %s", out)
	}
	p.stop(t)
	ip4(t, a, "neigh", "flush", "all") // as time does: the MAC address of the next hop was the switch's
	if err := dialFrom(t, outside, "", "10.10.0.11:8081"); err != nil {
		t.Errorf("without the agent, the other CNI's routes do not hold: %v", err)
	}
	if out := ip4(t, node, "rule"); strings.Contains(out, "142") {
		t.Errorf("the agent left a rule:\n%s", out)
	}
}
