package agent

import (
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/internal/kubetest"
	"github.com/antrail/antrail/internal/nstest"
)

// externalObjects are a machine that is an ExternalNode, with its card and its own network.
const externalObjects = `
apiVersion: antrail.io/v1alpha1
kind: NodeConfig
metadata: {name: vm1}
spec:
  features: {ExternalNode: true}
  policyBypassRules: [{direction: ingress, protocol: tcp, cidr: 192.0.2.7/32, port: 22}]
  ports:
  - {name: uplink, ofPort: 3, role: uplink}
  - {name: br-host, ofPort: 4, role: host, uplink: uplink, externalEntity: vms/vm1}
---
apiVersion: crd.antrea.io/v1alpha1
kind: ExternalNode
metadata: {name: vm1, namespace: vms, labels: {role: db}}
spec: {interfaces: [{ips: [192.0.2.10]}]}
---
apiVersion: crd.antrea.io/v1alpha2
kind: ExternalEntity
metadata: {name: front, namespace: vms, labels: {role: front}}
spec: {endpoints: [{ip: 192.0.2.1}]}
`

const externalPolicy = `
apiVersion: crd.antrea.io/v1beta1
kind: NetworkPolicy
metadata: {name: db, namespace: vms}
spec:
  priority: 5
  appliedTo: [{externalEntitySelector: {matchLabels: {role: db}}}]
  ingress:
  - {action: Allow, from: [{externalEntitySelector: {matchLabels: {role: front}}}], ports: [{protocol: TCP, port: 5432}]}
  - {action: Reject, ports: [{protocol: TCP, port: 22}]}
  - {action: Drop}
  egress:
  - {action: Reject, to: [{ipBlock: {cidr: 192.0.2.0/24}}], ports: [{protocol: TCP, port: 8080}]}
`

// TestAgentOnExternalNode: policies hold for the processes of a machine without pods, with real
// sockets. ARP passes by them, and so does what the NodeConfig names. The switch goes, and the
// machine is offline; it has neither gateway nor tunnel.
func TestAgentOnExternalNode(t *testing.T) {
	vm, outside := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, vm, "uplink", outside, "eth0")
	nstest.AddVeth(t, vm, "br-host", vm, "host0")
	for _, link := range []string{"uplink", "br-host", "host0", "lo"} {
		vm.SetUp(t, link)
	}
	outside.SetUp(t, "eth0")
	vm.AddAddress(t, "host0", "192.0.2.10/24")
	for _, a := range []string{"192.0.2.1/24", "192.0.2.7/24"} {
		outside.AddAddress(t, "eth0", a)
	}
	manifests := t.TempDir()
	writeFile(t, filepath.Join(manifests, "node.yaml"), externalObjects)
	_, p := startText(t, vm, "nodeName: vm1\nnodeType: externalNode\nmanifests: "+manifests+"\n")
	exchange(t, outside, vm, "192.0.2.10:8081")
	exchange(t, vm, outside, "192.0.2.1:8080")

	writeFile(t, filepath.Join(manifests, "policy.yaml"), externalPolicy)
	listenAt(t, outside, "192.0.2.1:8080")
	nstest.Until(t, "the policy is in force", func() bool {
		return errors.Is(dialFrom(t, vm, "", "192.0.2.1:8080"), syscall.ECONNREFUSED)
	})
	exchange(t, outside, vm, "192.0.2.10:5432")
	exchange(t, vm, outside, "192.0.2.1:8082")
	listenAt(t, vm, "192.0.2.10:22")
	listenAt(t, vm, "192.0.2.10:8081")
	if err := dialFrom(t, outside, "192.0.2.7", "192.0.2.10:22"); err != nil {
		t.Errorf("past the policies: %v", err)
	}
	if err := dialFrom(t, outside, "192.0.2.1", "192.0.2.10:22"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("rejected: %v", err)
	}
	var silence net.Error
	if err := dialFrom(t, outside, "192.0.2.1", "192.0.2.10:8081"); !errors.As(err, &silence) || !silence.Timeout() {
		t.Errorf("dropped: %v", err)
	}
	vm.Do(t, func() {
		if _, err := net.InterfaceByName("antrea-gw0"); err == nil {
			t.Error("there is a gateway")
		}
	})
	p.stop(t)
	if err := dialFrom(t, outside, "192.0.2.7", "192.0.2.10:22"); err == nil {
		t.Error("without the switch, the machine is not offline")
	}
}

// TestExternalNodeFromAPI: an external Node has its ports from a file, and ExternalNodes, entities and
// policies from the API. An ExternalNode with other labels is under other policies.
func TestExternalNodeFromAPI(t *testing.T) {
	api := kubetest.New(t)
	own, rest, _ := strings.Cut(externalObjects, "---\n")
	api.Apply(rest)
	api.Apply(externalPolicy)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "node.yaml"), own)
	file := filepath.Join(dir, "agent.yaml")
	writeFile(t, file, "nodeName: vm1\nnodeType: externalNode\nsocket: "+dir+"/s\nkubernetes: {kubeconfig: "+api.Kubeconfig()+", nodeConfig: node.yaml}\n")
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	a := startKube(t, c, nil)
	has := func(what string) func() bool {
		return func() bool {
			return slices.ContainsFunc(a.Switch.Flows(), func(f telemetry.FlowStats) bool { return strings.Contains(f.Entry.String(), what) })
		}
	}
	a.until("the pair of ports", has("in_port=4"))
	a.until("the policy for it", has("tp_dst=5432"))
	if ports := a.live.ports(); len(ports) != 2 || ports[0].OFPort != 3 || ports[1].Name != "br-host" {
		t.Errorf("ports %+v", ports)
	}
	api.Apply(strings.Replace(rest, "role: db", "role: web", 1))
	a.until("no policy for it", func() bool { return !has("tp_dst=5432")() })
	api.Apply(rest)
	a.until("the policy again", has("tp_dst=5432"))
	other := *c
	other.NodeName = "vm2"
	if _, err := other.LearnExternal(); err == nil || !strings.Contains(err.Error(), "there is no NodeConfig/vm2") {
		t.Errorf("another Node's file: %v", err)
	}
}

// listenAt listens in a namespace until the test ends.
func listenAt(t *testing.T, n *nstest.Namespace, at string) {
	t.Helper()
	n.Do(t, func() {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	})
}

// dialFrom connects from an address, and says why it cannot. A packet that is lost is given up.
func dialFrom(t *testing.T, n *nstest.Namespace, from, to string) (err error) {
	t.Helper()
	n.Do(t, func() {
		d := net.Dialer{Timeout: 700 * time.Millisecond}
		if from != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
		}
		var c net.Conn
		if c, err = d.Dial("tcp", to); err == nil {
			c.Close()
		}
	})
	return err
}
