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

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/internal/kubetest"
	"github.com/antrail/antrail/switchd"
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
func kubeConfig(t *testing.T, api interface{ Kubeconfig() string }) *Config {
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
	c, err := LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// kubeAgent is an agent without Node, with what it was told.
type kubeAgent struct {
	*Agent
	t    *testing.T
	end  func()
	log  logLines
	side chan *control.NodeSide
}

// startKube starts one, and lets the test end it.
func startKube(t *testing.T, c *Config) *kubeAgent {
	t.Helper()
	a := &kubeAgent{t: t, log: make(logLines, 1000), side: make(chan *control.NodeSide, 1000)}
	a.Agent = &Agent{config: c, log: slog.New(slog.NewTextHandler(a.log, nil)), told: make(chan struct{})}
	o := c.options()
	o.snapshot = c.snapshotFile()
	var err error
	if o.cluster, err = c.joinCluster(t.Context(), a.Agent.log); err == nil {
		o.clock, err = switchd.BootClock()
	}
	if err != nil {
		t.Fatal(err)
	}
	ports, err := a.install(o)
	if err != nil {
		t.Fatal(err)
	}
	a.pods = newPodPorts(ports, a.local, nil, a.Agent.log)
	a.live.setPorts = a.pods.set
	a.live.setNode = func(s *control.NodeSide) error { a.side <- s; return nil }
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
		closePipeline(t, a.pipeline)
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
	a := startKube(t, c)
	if !slices.Equal(c.Gateway.Addresses, []netip.Prefix{netip.MustParsePrefix("10.10.0.1/24"), netip.MustParsePrefix("fd00:10:10::1/64")}) ||
		c.Tunnel.LocalAddress != netip.MustParseAddr("192.168.77.102") || c.Gateway.MTU != 1450 || c.Gateway.MAC != gatewayMAC("node-a") {
		t.Errorf("learned %+v, %+v", c.Gateway, c.Tunnel)
	}
	a.until("the first state", a.synced)
	wantPorts(t, a.live.ports(), Port{Name: "web-a", OFPort: 37, Link: "web-a", Driver: "auto", Pod: "default/web-a", MAC: c.Ports[0].MAC})
	wantPorts(t, a.pods.wanted(), a.live.ports()...)
	if n := entriesOf(a.pipeline, "IngressDefaultRule"); n != 2 {
		t.Errorf("%d entries in IngressDefaultRule, want the isolation of web-a and the table-miss", n)
	}
	node := a.objects.NodeSide()
	want := []control.PeerPods{
		{Node: "node-b", Address: netip.MustParseAddr("192.168.77.103"), PodCIDR: netip.MustParsePrefix("10.10.1.0/24"), Gateway: netip.MustParseAddr("10.10.1.1")},
		{Node: "node-b", Address: netip.MustParseAddr("192.168.77.103"), PodCIDR: netip.MustParsePrefix("fd00:10:10:1::/64"), Gateway: netip.MustParseAddr("fd00:10:10:1::1")},
	}
	if !slices.Equal(node.Peers, want) || !slices.Equal(node.NodePortAddresses, []netip.Addr{netip.MustParseAddr("127.0.0.1"), c.Tunnel.LocalAddress}) || node.ServiceCIDRs[0] != c.Kubernetes.ServiceCIDRs[0] {
		t.Errorf("the Node is asked for %+v", node)
	}
	a.tellsWatches()
	api.Delete("networking.k8s.io/v1", "NetworkPolicy", "default", "web")
	a.until("the policy's end", func() bool { return entriesOf(a.pipeline, "IngressDefaultRule") == 1 })
	api.Delete("v1", "Node", "", "node-b")
	a.until("the peer's end", func() bool { return len(a.objects.NodeSide().Peers) == 0 })
	if names := a.gateways(); len(names) != 0 {
		t.Errorf("gateways %v", names)
	}
}

// tellsWatches asks the API and the metrics how the watches stand.
func (a *kubeAgent) tellsWatches() {
	a.t.Helper()
	var text strings.Builder
	if err := a.writeWatches(&text, query{}); err != nil {
		a.t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^pods here +watching +1 +0 +\d+ +0 +-$`)
	if !want.MatchString(text.String()) {
		a.t.Errorf("no %v in\n%s", want, text.String())
	}
	_, metrics := ask(a.t, a.scrapeRoutes(), "/metrics")
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
	a := startKube(t, c)
	a.until("the first state", a.synced)
	var kept keptState
	a.keepSnapshot(c.snapshotFile(), &kept, learnedPause)
	want, peers := dumped(a.pipeline), a.objects.NodeSide().Peers
	slices.Sort(want)
	a.end()

	api.Down()
	again := *c
	again.PodCIDRs, again.Gateway.Addresses, again.Tunnel.LocalAddress, again.learned = nil, nil, netip.Addr{}, false
	b := startKube(t, &again)
	b.log.want(t, "it is taken for what it was")
	if got := dumped(b.pipeline); !sameSorted(got, want) {
		t.Errorf("it began with %d lines, not the %d of the agent before", len(got), len(want))
	}
	if !slices.Equal(b.objects.NodeSide().Peers, peers) || len(b.live.ports()) != 1 {
		t.Errorf("peers %v, ports %v", b.objects.NodeSide().Peers, b.live.ports())
	}
	b.until("a reason", func() bool { return strings.Contains(fmt.Sprint(b.sourceRead()), "connection refused") })
	if text := b.sourceRead().Error(); !strings.Contains(text, "the entries of the agent before are in force") {
		t.Error(text)
	}
	api.Up()
	b.until("the API", b.synced)
	if got := dumped(b.pipeline); !sameSorted(got, want) {
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
	if _, err := c.joinCluster(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
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
	again.Kubernetes = &Kubernetes{Kubeconfig: other, ServiceCIDRs: c.Kubernetes.ServiceCIDRs}
	log := make(logLines, 1000)
	joined, err := again.joinCluster(t.Context(), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil || joined == nil {
		t.Fatal(err)
	}
	log.want(t, "it is taken for what it was")
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
		_, err := kubeConfig(t, api).joinCluster(ctx, slog.New(slog.NewTextHandler(log, nil)))
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
	a := startKube(t, kubeConfig(t, api))
	a.until("the first state", a.synced)
	entries := len(a.sw.Flows())
	api.Apply(strings.NewReplacer("10.10.0.0/24", "10.10.7.0/24").Replace(clusterObjects))
	a.log.want(t, "start it again")
	if n := len(a.sw.Flows()); n != entries {
		t.Errorf("%d entries, were %d", n, entries)
	}
}

func TestKubeConfigFaults(t *testing.T) {
	t.Setenv("NODE_NAME", "node-x")
	c, err := ParseConfig([]byte("kubernetes: {}\n"))
	if err != nil || c.NodeName != "node-x" || c.Gateway.MAC[0]&3 != 2 || gatewayMAC("node-y") == c.Gateway.MAC {
		t.Errorf("%+v, %v", c, err)
	}
	if check := c.Preflight("", ""); check.MTU != 0 || c.Gateway.MTU != 0 {
		t.Errorf("a Node is checked for an MTU of %d", check.MTU)
	}
	for text, want := range map[string]string{
		"kubernetes: {}\nmanifests: objects\n":                                           "kubernetes: not together with manifests",
		"kubernetes: {}\nflows: x.flows\n":                                               "kubernetes: not together with manifests",
		"kubernetes: {kubeconfg: x}\n":                                                   `kubernetes.kubeconfg: there is no such key (did you mean kubeconfig?)`,
		"kubernetes: {serviceCIDRs: [10.96.0.1/12]}\n":                                   "kubernetes.serviceCIDRs[0]: 10.96.0.1/12 is no range",
		"kubernetes: {nodePortAddresses: [\"::1\"]}\n":                                   "kubernetes.nodePortAddresses[0]",
		"kubernetes: {defaultLoadBalancerMode: dst}\n":                                   `"dst" is neither nat nor dsr`,
		"kubernetes: {defaultLoadBalancerMode: dsr}\n":                                   "kubernetes.defaultLoadBalancerMode: mode dsr needs features: {LoadBalancerModeDSR: true}",
		"kubernetes: {features: {Nonsense: true}}\n":                                     "kubernetes.features.Nonsense: there is no such feature gate; antrail has AntreaPolicy, ",
		"kubernetes: {features: {TrafficContol: true}}\n":                                "kubernetes.features.TrafficContol: there is no such feature gate (did you mean TrafficControl?)",
		"kubernetes: {features: {Multicast: true}}\n":                                    "kubernetes.features.Multicast: antrail does not have this feature of Antrea; remove the gate, or set it to false",
		"kubernetes: {}\nports: [{name: a, ofPort: 5, pod: web}]\n":                      `ports[0].pod: "web" is not namespace/name`,
		"kubernetes: {}\nports: [{name: a, ofPort: 5, pod: default/web}]\n":              "ports[0].mac: missing",
		"kubernetes: {}\nports: [{name: a}]\n":                                           "ports[0].ofPort: 0 is not between",
		"kubernetes: {}\npeers: [{name: b, address: 1.2.3.4, podCIDRs: [1.0.0.0/8]}]\n":  "peers: the API tells them",
		strings.Replace(goodConfig, "{name: client-a,", "{name: client-a, pod: a/b,", 1): "ports[0].pod and mac: only with kubernetes",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// TestFacts: what another Node's agent kept, or somebody else wrote, is not
// believed.
func TestFacts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "antrail", "node.json") // the first agent finds no directory
	n := &nodeFacts{Node: "node-a", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24")}, Addresses: []netip.Addr{netip.MustParseAddr("192.168.77.102")}}
	if err := n.write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := readFacts(path, "node-a"); err != nil || fmt.Sprint(got) != fmt.Sprint(n) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := readFacts(path, "node-b"); err == nil {
		t.Error("another Node's facts are believed")
	}
	for _, bad := range []string{"", "{}", `{"node":"node-a"}`, "[", strings.Repeat(" ", maxFacts+1)} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readFacts(path, "node-a"); err == nil {
			t.Errorf("%.20q is believed", bad)
		}
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
	a := startKube(t, kubeConfig(t, api))
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
