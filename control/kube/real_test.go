//go:build k8s

package kube

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/internal/kubetest"
)

// Tests against kube-apiserver and etcd, with the rights that deploy/ gives the agent's service
// account: make test-k8s.

// realAPI is an API server behind a gate. The test writes to the server directly, also while the
// source's gate is shut.
type realAPI struct {
	*kubetest.Real
	t    *testing.T
	gate *gate
}

// rolesFile grants the agent's rights.
const rolesFile = "../../deploy/kustomize/base/rbac.yaml"

// newReal starts an API server with the Nodes, on request with Antrea's kinds, and with additional
// flags.
func newReal(t *testing.T, antrea bool, flags ...string) *realAPI {
	t.Helper()
	r := &realAPI{Real: kubetest.NewReal(t, flags...), t: t}
	r.applyFiles(rolesFile)
	if antrea {
		r.applyCRDs()
	}
	r.Apply(nodes)
	r.gate = newGate(t, r.Address())
	return r
}

func (r *realAPI) applyFiles(pattern string) {
	r.t.Helper()
	files, _ := filepath.Glob(pattern)
	if len(files) == 0 {
		r.t.Fatalf("no files %s", pattern)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			r.t.Fatal(err)
		}
		r.Apply(string(text))
	}
}

// applyCRDs creates Antrea's kinds, and waits until they are served.
func (r *realAPI) applyCRDs() {
	r.t.Helper()
	r.applyFiles("../../deploy/crds/*.yaml")
	f := &following{t: r.t, log: &lines{}, Source: &Source{}}
	f.until("Antrea's kinds", func() bool {
		for _, k := range antreaKinds {
			if !r.Has("/apis/" + antreaGroup + "/" + k.versions[0] + "/" + k.plural) {
				return false
			}
		}
		return true
	})
}

// Kubeconfig leads through the gate.
func (r *realAPI) Kubeconfig() string {
	r.t.Helper()
	path := r.Real.Kubeconfig()
	text, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	through := regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAll(text, []byte(r.gate.ln.Addr().String()))
	if err := os.WriteFile(path, through, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// gate forwards connections while it is open.
type gate struct {
	ln net.Listener
	to string

	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func newGate(t *testing.T, to string) *gate {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{ln: ln, to: to}
	go g.runAccept()
	t.Cleanup(func() { ln.Close(); g.set(true) })
	return g
}

func (g *gate) runAccept() {
	for {
		in, err := g.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", g.to)
		if err != nil || !g.enter(in, out) {
			in.Close()
			continue
		}
		go runCopy(in, out)
		go runCopy(out, in)
	}
}

func runCopy(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
}

func (g *gate) enter(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns = append(g.conns, conns...)
	return !g.shut
}

// set opens the gate, or shuts it and ends open connections.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			c.Close()
		}
		g.conns = nil
	}
}

const web = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.96.0.80, clusterIPs: [10.96.0.80], selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: "", port: 80, protocol: TCP}]
endpoints: [{addresses: [10.10.0.2], conditions: {ready: true}, nodeName: node-a}]
---`

// antreaObjects has one object of each of Antrea's kinds, with many fields.
const antreaObjects = `
apiVersion: crd.antrea.io/v1beta1
kind: Tier
metadata: {name: gold}
spec: {priority: 7, description: first}
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterGroup
metadata: {name: webs}
spec: {podSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}
---
apiVersion: crd.antrea.io/v1beta1
kind: Group
metadata: {name: outside}
spec: {ipBlocks: [{cidr: 192.0.2.0/24, except: [192.0.2.8/32]}]}
---
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: cluster}
spec:
  tier: gold
  priority: 5.5
  appliedTo: [{group: webs}]
  ingress:
    - action: Allow
      name: web
      enableLogging: true
      logLabel: l1
      ports: [{protocol: TCP, port: 80, endPort: 90}, {protocol: TCP, port: http}]
      from: [{namespaces: {match: Self}}, {podSelector: {matchLabels: {app: web}}, namespaceSelector: {}}]
    - {action: Drop, protocols: [{icmp: {icmpType: 8, icmpCode: 0}}]}
  egress: [{action: Reject, to: [{ipBlock: {cidr: 192.0.2.0/24}}]}]
---
apiVersion: crd.antrea.io/v1beta1
kind: NetworkPolicy
metadata: {name: here}
spec: {priority: 5, appliedTo: [{podSelector: {}}], ingress: [{action: Pass, from: [{group: outside}]}]}
---
apiVersion: crd.antrea.io/v1beta1
kind: ExternalIPPool
metadata: {name: pool}
spec: {ipRanges: [{start: 192.168.77.110, end: 192.168.77.120}, {cidr: 192.168.78.0/28}], nodeSelector: {}}
---
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: out}
spec: {appliedTo: {podSelector: {matchLabels: {app: web}}}, egressIP: 192.168.77.112, externalIPPool: pool}
status: {egressNode: node-a, egressIP: 192.168.77.112}
---
apiVersion: crd.antrea.io/v1alpha2
kind: TrafficControl
metadata: {name: mirror}
spec: {appliedTo: {podSelector: {}}, direction: Both, action: Mirror, targetPort: {vxlan: {remoteIP: 192.168.77.9, vni: 5}}}
---`

// TestRealFirstState: with the rights of deploy/, every kind arrives in one step; then changes
// arrive.
func TestRealFirstState(t *testing.T) {
	api := newReal(t, true)
	api.Apply(denyAll + web + antreaObjects + pod("web", "node-a", "10.10.0.2", "Running") + pod("far", "node-b", "10.10.1.2", "Running"))
	f := follow(t, api, nil).synced()
	c := f.store.Snapshot()
	policy := c.AntreaPolicies[cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "cluster"}]
	if len(f.seen()) != 1 || len(f.Problems()) > 0 || policy == nil || policy.Priority != 5.5 || len(c.AntreaPolicies) != 2 ||
		len(c.Tiers) != 7 || len(c.Groups) != 2 || len(c.Egresses) != 1 || len(c.ExternalIPPools) != 1 || len(c.TrafficControls) != 1 {
		t.Errorf("%d steps, problems %v, snapshot %+v", len(f.seen()), f.Problems(), c)
	}
	if slices := c.SlicesOf(cluster.Name{Namespace: "default", Name: "web"}); len(slices) != 1 || len(slices[0].Endpoints) != 1 {
		t.Errorf("slices %v", slices)
	}
	if eg := c.Egresses[cluster.Key{Kind: cluster.KindEgress, Name: "out"}]; eg == nil || eg.Node != "node-a" {
		t.Errorf("egress %+v", eg)
	}
	for _, s := range f.Status() {
		if s.State != Watching || s.Faults != 0 {
			t.Errorf("watch %+v", s)
		}
	}
	if ranges, err := f.ServiceCIDRs(t.Context()); err != nil || len(ranges) != 1 || ranges[0].String() != "10.96.0.0/16" {
		t.Errorf("service ranges %v, %v", ranges, err)
	}
	if n, err := f.Node(t.Context(), "node-a"); err != nil || len(n.PodCIDRs) != 1 {
		t.Errorf("node %v, %v", n, err)
	}
	api.Apply(pod("web", "node-a", "10.10.0.2", "Succeeded") + strings.Replace(denyAll, "[Ingress]", "[Egress]", 1))
	f.until("the pod's end", func() bool { return f.pod("web").Terminated() })
	api.Delete("v1", "Pod", "default", "far")
	api.Delete("crd.antrea.io/v1beta1", "Tier", "", "gold")
	// A policy in force is in the deleted tier, so the tier stays and is a refused edit.
	gold := cluster.Key{Kind: cluster.KindTier, Name: "gold"}
	f.until("the deletions", func() bool {
		now := f.store.Snapshot()
		return f.pod("far") == nil && f.store.RefusedEdits()[gold] != "" && now.Tiers[gold] != nil && len(now.AntreaPolicies) == 2
	})
	api.Delete("crd.antrea.io/v1beta1", "ClusterNetworkPolicy", "", "cluster")
	f.until("the tier's end", func() bool {
		now := f.store.Snapshot()
		return f.store.RefusedEdits()[gold] == "" && now.Tiers[gold] == nil && len(now.AntreaPolicies) == 1
	})
	f.allowed()
}

// TestRealLostWatches: changes during an interruption, and during a restart of the API server,
// arrive afterwards as differences.
func TestRealLostWatches(t *testing.T) {
	api := newReal(t, true)
	api.Apply(denyAll + pod("stays", "node-b", "10.10.1.2", "Running") + pod("goes", "node-b", "10.10.1.3", "Running") +
		pod("moves", "node-b", "10.10.1.4", "Running"))
	f := follow(t, api, nil).synced()
	stays := f.pod("stays")
	for i, restart := range []bool{false, true} {
		api.gate.set(true)
		api.Delete("v1", "Pod", "default", "goes")
		api.Apply(pod("moves", "node-b", fmt.Sprint("10.10.1.", 10+i), "Running") + acnp(fmt.Sprint("drop", i), "emergency"))
		if restart {
			api.Stop()
			api.Start()
		}
		if f.pod("goes") == nil || f.pod("stays") != stays {
			t.Error("it lost objects while the API was away")
		}
		api.gate.set(false)
		f.until("the difference", func() bool {
			return f.pod("goes") == nil && f.pod("moves").IPs[0].String() == fmt.Sprint("10.10.1.", 10+i) && len(f.store.Snapshot().AntreaPolicies) == i+1
		})
		api.Apply(pod("goes", "node-b", "10.10.1.3", "Running"))
		f.until("the pod", func() bool { return f.pod("goes") != nil })
	}
	if f.pod("stays") != stays {
		t.Error("an unchanged object was replaced")
	}
	for _, u := range f.seen()[1:] {
		for _, k := range u.Changed {
			if k.Name == "stays" || k.Name == "deny" {
				t.Errorf("%v changed", k)
			}
		}
	}
	f.allowed()
}

// TestRealLateKinds: a running source finds Antrea's kinds when they appear.
func TestRealLateKinds(t *testing.T) {
	api := newReal(t, false)
	f := follow(t, api, nil).synced()
	api.applyCRDs()
	api.Apply(acnp("drop", "emergency"))
	f.until("the policy", func() bool { return len(f.store.Snapshot().AntreaPolicies) == 1 })
	f.allowed()
}

// TestRealRefused: a refused object gets an Event.
func TestRealRefused(t *testing.T) {
	api := newReal(t, true)
	f := follow(t, api, nil).synced()
	api.Apply(strings.Replace(acnp("drop", "emergency"), "ingress: [{action: Drop}]", "ingress: [{action: Drop, ports: [{endPort: 7}]}]", 1))
	var events []map[string]any
	f.until("the Event", func() bool {
		events = api.List("/api/v1/namespaces/default/events?fieldSelector=reason=Refused")
		return len(events) == 1
	})
	about := events[0]["involvedObject"].(map[string]any)
	if message := fmt.Sprint(events[0]["message"]); about["name"] != "drop" || about["uid"] == "" || !strings.HasPrefix(message, "spec.ingress[0].ports[0].endPort: Forbidden") {
		t.Errorf("event %v", events[0])
	}
	f.allowed()
}

// TestRealConflicts: several writers read and change the same objects, and try again after a
// conflict. At the end the store has the objects of the API.
func TestRealConflicts(t *testing.T) {
	const writers, writes, pods = 6, 40, 8
	api := newReal(t, true)
	for i := range pods {
		api.Apply(pod(fmt.Sprint("p", i), "node-b", fmt.Sprint("10.10.1.", 2+i), "Running"))
	}
	f := follow(t, api, nil).synced()
	var wg sync.WaitGroup
	var mu sync.Mutex
	conflicts := 0
	for w := range writers {
		rnd := rand.New(rand.NewPCG(1, uint64(w)))
		wg.Go(func() {
			for i := range writes {
				path := fmt.Sprint("/api/v1/namespaces/default/pods/p", rnd.IntN(pods))
				for api.Change(path, "labels", "turn", fmt.Sprintf("%d-%d", w, i)) == 409 {
					mu.Lock()
					conflicts++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d conflicts", conflicts)
	f.until("the last state", func() bool {
		for _, o := range api.List("/api/v1/namespaces/default/pods") {
			var m struct {
				Name   string
				Labels map[string]string
			}
			b, _ := json.Marshal(o["metadata"])
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			if p := f.pod(m.Name); p == nil || p.Labels["turn"] != m.Labels["turn"] {
				return false
			}
		}
		return true
	})
}
