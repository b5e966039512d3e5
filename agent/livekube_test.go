package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/internal/kubetest"
	"github.com/antrail/antrail/switchd"
	"github.com/prometheus/client_golang/prometheus"
)

// clusterObjects are two Nodes and a Pod on each, one of which a policy guards.
const clusterObjects = `
apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {podCIDR: 10.10.0.0/24, podCIDRs: [10.10.0.0/24, "fd00:10:10::/64"]}
status: {addresses: [{type: Hostname, address: node-a}, {type: InternalIP, address: 192.168.77.102}]}
---
apiVersion: v1
kind: Node
metadata: {name: node-b}
spec: {podCIDR: 10.10.1.0/24, podCIDRs: [10.10.1.0/24, "fd00:10:10:1::/64"]}
status: {addresses: [{type: InternalIP, address: 192.168.77.103}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-a, labels: {app: web}}
spec: {nodeName: node-a, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.10.0.26, podIPs: [{ip: 10.10.0.26}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-b, labels: {app: web}}
spec: {nodeName: node-b, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.10.1.24, podIPs: [{ip: 10.10.1.24}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {}}]}]}
`

// kubeConfig is a configuration that leaves to the API what it can tell.
func kubeConfig(t *testing.T, api interface{ Kubeconfig() string }) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "agent.yaml")
	text := fmt.Sprintf(`
nodeName: node-a
socket: %s
kubernetes: {kubeconfig: %s, proxyAll: true, serviceCIDRs: [10.96.0.0/12]}
conntrack: {max: 2000}
ports: [{name: web-a, ofPort: 37, pod: default/web-a, mac: "8e:2f:e5:e4:b6:ab"}]
`, filepath.Join(t.TempDir(), "agent.sock"), api.Kubeconfig())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kubeAgent is an agent without Node, with the ports that it received.
type kubeAgent struct {
	*Agent
	t    *testing.T
	end  func()
	log  logLines
	side chan *ledger.NodeSide
}

// startKube starts one, whose switch begins with the entries in kept. The test ends it.
func startKube(t *testing.T, c *config.Config, kept *keptSwitch) *kubeAgent {
	t.Helper()
	a := &kubeAgent{t: t, log: make(logLines, 1000), side: make(chan *ledger.NodeSide, 1000)}
	a.Agent = &Agent{config: c, log: slog.New(slog.NewTextHandler(a.log, nil)), told: make(chan struct{})}
	o := pipeline.OptionsOf(c)
	cluster, err := joinCluster(t.Context(), c, a.Agent.log)
	if err == nil {
		o.Clock, err = switchd.BootClock()
	}
	if err != nil {
		t.Fatal(err)
	}
	if a.Pipeline, err = pipeline.NewPipeline(o); err != nil {
		t.Fatal(err)
	}
	kept.restore(t, a.Pipeline)
	ports, err := a.installObjects(cluster)
	if err != nil {
		t.Fatal(err)
	}
	a.answers = answer.New(a.Pipeline)
	a.Pods = podports.New(ports, a.Local, nil, a.Agent.log)
	a.live.setPorts = a.Pods.Set
	a.live.setNode = func(s *ledger.NodeSide) error { a.side <- s; return nil }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.live.runObjects(ctx) }()
	ran := true
	a.end = func() {
		if !ran {
			return
		}
		ran = false
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
		closePipeline(t, a.Pipeline)
	}
	t.Cleanup(a.end)
	return a
}

func (a *kubeAgent) until(what string, is func() bool) {
	a.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("%s does not come: %v", what, a.sourceRead())
		}
	}
}

func (a *kubeAgent) synced() bool { return a.sourceRead() == nil }

// TestKube: an agent learns its Node from the API, has the entries of the first
// state, its ports after that, and follows changes.
func TestKube(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(clusterObjects)
	c := kubeConfig(t, api)
	a := startKube(t, c, nil)
	if !slices.Equal(c.Gateway.Addresses, []netip.Prefix{netip.MustParsePrefix("10.10.0.1/24"), netip.MustParsePrefix("fd00:10:10::1/64")}) ||
		c.Tunnel.LocalAddress != netip.MustParseAddr("192.168.77.102") || c.Gateway.MTU != 1450 || c.Gateway.MAC[0]&3 != 2 {
		t.Errorf("learned %+v, %+v", c.Gateway, c.Tunnel)
	}
	a.until("the first state", a.synced)
	wantPorts(t, a.live.ports(), config.Port{Name: "web-a", OFPort: 37, Link: "web-a", Driver: "auto", Pod: "default/web-a", MAC: c.Ports[0].MAC})
	wantPorts(t, a.Pods.Wanted(), a.live.ports()...)
	if n := entriesOf(a.Pipeline, "IngressDefaultRule"); n != 2 {
		t.Errorf("%d entries in IngressDefaultRule, want the isolation of web-a and the table-miss", n)
	}
	node := a.Objects.NodeSide()
	want := []ledger.PeerPods{
		{Node: "node-b", Address: netip.MustParseAddr("192.168.77.103"), PodCIDR: netip.MustParsePrefix("10.10.1.0/24"), Gateway: netip.MustParseAddr("10.10.1.1")},
		{Node: "node-b", Address: netip.MustParseAddr("192.168.77.103"), PodCIDR: netip.MustParsePrefix("fd00:10:10:1::/64"), Gateway: netip.MustParseAddr("fd00:10:10:1::1")},
	}
	if !slices.Equal(node.Peers, want) || !slices.Equal(node.NodePortAddresses, []netip.Addr{netip.MustParseAddr("127.0.0.1"), c.Tunnel.LocalAddress}) || node.ServiceCIDRs[0] != c.Kubernetes.ServiceCIDRs[0] {
		t.Errorf("the Node is asked for %+v", node)
	}
	a.tellsWatches()
	api.Delete("networking.k8s.io/v1", "NetworkPolicy", "default", "web")
	a.until("the policy's end", func() bool { return entriesOf(a.Pipeline, "IngressDefaultRule") == 1 })
	api.Delete("v1", "Node", "", "node-b")
	a.until("the peer's end", func() bool { return len(a.Objects.NodeSide().Peers) == 0 })
	if names := a.gateways(); len(names) != 0 {
		t.Errorf("gateways %v", names)
	}
}

// tellsWatches asks the API and the metrics how the watches stand.
func (a *kubeAgent) tellsWatches() {
	a.t.Helper()
	_, text := getPath(a.t, answer.New(a.Pipeline).Routes(prometheus.NewRegistry()), "/watches")
	want := regexp.MustCompile(`(?m)^pods here +watching +1 +0 +\d+ +0 +-$`)
	if !want.MatchString(text) {
		a.t.Errorf("no %v in\n%s", want, text)
	}
	_, metrics := getPath(a.t, a.scrapeRoutes(), "/metrics")
	for _, line := range []string{`antrail_kubernetes_watch_up{resource="nodes",state="watching"} 1`, `antrail_kubernetes_objects{resource="nodes"} 2`} {
		if !strings.Contains(metrics, line) {
			a.t.Errorf("no %s", line)
		}
	}
}

// TestKubeRestart: an agent that is started while the API is away goes on as the
// one before, and takes over the difference when it is back.
func TestKubeRestart(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(clusterObjects)
	c := kubeConfig(t, api)
	again := *c
	a := startKube(t, c, nil)
	a.until("the first state", a.synced)
	kept := keep(t, a.Agent)
	want, peers := dumped(a.Pipeline), a.Objects.NodeSide().Peers
	slices.Sort(want)
	a.end()

	api.Down()
	b := startKube(t, &again, kept)
	b.log.want(t, "using the stored facts")
	if got := dumped(b.Pipeline); !sameSorted(got, want) {
		t.Errorf("it began with %d lines, not the %d of the agent before", len(got), len(want))
	}
	if !slices.Equal(b.Objects.NodeSide().Peers, peers) || len(b.live.ports()) != 1 {
		t.Errorf("peers %v, ports %v", b.Objects.NodeSide().Peers, b.live.ports())
	}
	b.until("a reason", func() bool { return strings.Contains(fmt.Sprint(b.sourceRead()), "connection refused") })
	if text := b.sourceRead().Error(); !strings.Contains(text, "the previous agent's entries are in force") {
		t.Error(text)
	}
	api.Up()
	b.until("the API", b.synced)
	if got := dumped(b.Pipeline); !sameSorted(got, want) {
		t.Errorf("after the API is back, %d lines, not the %d of before", len(got), len(want))
	}
}

// TestKubeRestartSilence: an API that takes connections and says nothing keeps nobody
// waiting who knows what the Node was.
func TestKubeRestartSilence(t *testing.T) {
	t.Parallel() // it waits until an API server that says nothing is given up
	api := kubetest.New(t)
	api.Apply(clusterObjects)
	c := kubeConfig(t, api)
	again := *c
	if _, err := joinCluster(t.Context(), c, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	text, err := os.ReadFile(c.Kubernetes.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server := regexp.MustCompile(`https?://[0-9.:]+`)
	other := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(other, server.ReplaceAll(text, []byte("http://"+silent.Addr().String())), 0o600); err != nil {
		t.Fatal(err)
	}
	again.Kubernetes = &config.Kubernetes{Kubeconfig: other, ServiceCIDRs: c.Kubernetes.ServiceCIDRs}
	log := make(logLines, 1000)
	joined, err := joinCluster(t.Context(), &again, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil || joined == nil {
		t.Fatal(err)
	}
	log.want(t, "using the stored facts")
	if !slices.Equal(again.PodCIDRs, c.PodCIDRs) {
		t.Errorf("podCIDRs %v, want %v", again.PodCIDRs, c.PodCIDRs)
	}
}

func sameSorted(got, want []string) bool {
	slices.Sort(got)
	return slices.Equal(got, want)
}

// TestKubeWaits: a Node without podCIDRs is waited for, and the end of the agent
// not.
func TestKubeWaits(t *testing.T) {
	api := kubetest.New(t)
	api.Apply("apiVersion: v1\nkind: Node\nmetadata: {name: node-a}\n")
	ctx, cancel := context.WithCancel(t.Context())
	log := make(logLines, 1000)
	ended := make(chan error, 1)
	go func() {
		_, err := joinCluster(ctx, kubeConfig(t, api), slog.New(slog.NewTextHandler(log, nil)))
		ended <- err
	}()
	log.want(t, "node node-a has no podCIDRs yet")
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

// TestKubeNodeMoves: a Node that has other podCIDRs is not followed.
func TestKubeNodeMoves(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(clusterObjects)
	a := startKube(t, kubeConfig(t, api), nil)
	a.until("the first state", a.synced)
	entries := len(a.Switch.Flows())
	api.Apply(strings.NewReplacer("10.10.0.0/24", "10.10.7.0/24").Replace(clusterObjects))
	a.log.want(t, "restart the agent")
	if n := len(a.Switch.Flows()); n != entries {
		t.Errorf("%d entries, were %d", n, entries)
	}
}

// TestKubeStatus: the agent tells how the Node's policies stand, and sums up.
func TestKubeStatus(t *testing.T) {
	t.Parallel() // it waits for the usual pace of reports
	api := kubetest.New(t)
	api.Apply(clusterObjects + "---" + `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: drop}
spec: {priority: 5, appliedTo: [{podSelector: {matchLabels: {app: web}}}], ingress: [{action: Drop}]}
`)
	a := startKube(t, kubeConfig(t, api), nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { a.runStatus(ctx); close(ended) }()
	var status map[string]any
	a.until("the status", func() bool {
		status, _ = api.Objects("clusternetworkpolicies")["/drop"]["status"].(map[string]any)
		return status != nil
	})
	if status["phase"] != "Realizing" || status["currentNodesRealized"] != 1.0 || status["desiredNodesRealized"] != 2.0 {
		t.Errorf("status %v", status)
	}
	info := api.Objects("antreaagentinfos")["/node-a"]
	if info["localPodNum"] != 1.0 || info["version"] == "" || fmt.Sprint(info["nodeSubnets"]) != "[10.10.0.0/24 fd00:10:10::/64]" {
		t.Errorf("AntreaAgentInfo %v", info)
	}
	cancel()
	<-ended
	a.config.Kubernetes.Status = new(false)
	a.runStatus(t.Context()) // ends at once
}
