package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/internal/kubetest"
)

// polling is how long a test waits for an expected state.
const waitAtMost = time.Minute

// following is a Source that fills a store from a server.
type following struct {
	*Source
	t     *testing.T
	store *store.Store
	log   *lines

	mu      sync.Mutex
	updates []store.Update
}

// server is an API server, simulated or real.
type server interface {
	Kubeconfig() string
	Apply(manifests string)
	Delete(apiVersion, kind, namespace, name string)
}

// lines is a log in memory.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// follow makes a Source of an API server, and runs it until the test ends.
func follow(t *testing.T, api server, adjust func(*Source)) *following {
	t.Helper()
	return followAs(t, api, "node-a", adjust)
}

// followAs is follow for a Node.
func followAs(t *testing.T, api server, node string, adjust func(*Source)) *following {
	t.Helper()
	f := &following{t: t, store: store.NewStore(store.GivenEndpoints), log: &lines{}}
	var err error
	log := slog.New(slog.NewTextHandler(f.log, nil))
	if f.Source, err = New(Config{Kubeconfig: api.Kubeconfig(), Node: node, Log: log}, f.store); err != nil {
		t.Fatal(err)
	}
	f.longest = 20 * time.Millisecond
	if adjust != nil {
		adjust(f.Source)
	}
	f.store.Follow(func(u store.Update) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.updates = append(f.updates, u)
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go runSource(f.Source, ctx, done)
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(waitAtMost):
			t.Error("the source does not end")
		}
	})
	return f
}

func runSource(s *Source, ctx context.Context, done chan<- struct{}) {
	s.Run(ctx)
	close(done)
}

// synced waits for the first state.
func (f *following) synced() *following {
	f.t.Helper()
	select {
	case <-f.Synced():
	case <-time.After(waitAtMost):
		f.t.Fatalf("not synced: %v", f.Missing())
	}
	return f
}

// until waits for a condition.
func (f *following) until(what string, is func() bool) {
	f.t.Helper()
	for end := time.Now().Add(waitAtMost); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s does not come; %v\n%s", what, f.Status(), f.log)
		}
	}
}

func (f *following) seen() []store.Update {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]store.Update(nil), f.updates...)
}

func (f *following) pod(name string) *cluster.Pod {
	return f.store.Snapshot().Pod(cluster.Name{Namespace: "default", Name: name})
}

func pod(name, node, ip, phase string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: web}, annotations: {big: "%s"}}
spec:
  nodeName: "%s"
  containers: [{name: c, image: i, env: [{name: A, value: b}], ports: [{name: http, containerPort: 80}]}]
status: {phase: %s, podIP: %s, podIPs: [{ip: %s}], conditions: [{type: Ready, status: "True"}]}
---`, name, strings.Repeat("x", 300), node, phase, ip, ip)
}

const nodes = `
apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {podCIDR: 10.10.0.0/24, podCIDRs: [10.10.0.0/24]}
status: {addresses: [{type: InternalIP, address: 192.168.77.102}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
---`

const denyAll = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny}
spec: {podSelector: {}, policyTypes: [Ingress]}
---`

func acnp(name, tier string) string {
	return fmt.Sprintf(`
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: %s}
spec: {tier: %s, priority: 5, appliedTo: [{podSelector: {}}], ingress: [{action: Drop}]}
---`, name, tier)
}

// TestFirstState: all objects arrive in one step, with streamed and with plain lists.
func TestFirstState(t *testing.T) {
	for _, plain := range []bool{false, true} {
		t.Run(fmt.Sprintf("plain=%v", plain), func(t *testing.T) {
			api := kubetest.New(t)
			if plain {
				api.Plain()
			}
			api.Apply(nodes + denyAll + acnp("drop", "emergency") +
				pod("here", "node-a", "10.10.0.2", "Running") + pod("there", "node-b", "10.10.1.2", "Running") +
				pod("done", "node-b", "10.10.1.3", "Succeeded") + pod("mine-done", "node-a", "10.10.0.3", "Succeeded") +
				pod("unplaced", "", "10.10.1.4", "Pending"))
			f := follow(t, api, nil).synced()
			updates := f.seen()
			if len(updates) != 1 || !updates[0].Since.IsZero() {
				t.Fatalf("%d steps, since %v", len(updates), updates[0].Since)
			}
			c := f.store.Snapshot()
			if len(c.Pods) != 3 || f.pod("here") == nil || f.pod("there") == nil || f.pod("mine-done") == nil {
				t.Errorf("pods: %v", c.Pods)
			}
			if len(c.NetworkPolicies) != 1 || len(c.AntreaPolicies) != 1 || len(c.Namespaces) != 1 || len(c.Nodes) != 1 {
				t.Errorf("objects: %+v", c)
			}
			p := f.pod("here")
			if p.Ports[0].Name != "http" || !p.Ready || p.IPs[0].String() != "10.10.0.2" || p.Labels["app"] != "web" || p.UID == "" {
				t.Errorf("pod: %+v", p)
			}
			if lists := api.Requests("list pods"); plain && lists != 2 || !plain && lists != 0 {
				t.Errorf("%d lists of pods", lists)
			}
			if p.Key.Kind != cluster.KindPod || p.Source != (cluster.Source{File: SourceName}) {
				t.Errorf("source: %+v", p.Meta)
			}
		})
	}
}

// TestChanges: new, changed and deleted objects arrive, with the times of arrival.
func TestChanges(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(nodes)
	f := follow(t, api, nil).synced()
	before := time.Now()
	api.Apply(pod("web", "node-b", "10.10.1.2", "Running"))
	f.until("the pod", func() bool { return f.pod("web") != nil })
	last := f.seen()[len(f.seen())-1]
	if last.Since.Before(before) || last.Since.After(time.Now()) {
		t.Errorf("since %v, began %v", last.Since, before)
	}
	api.Apply(pod("web", "node-b", "10.10.1.9", "Running"))
	f.until("the new address", func() bool { return f.pod("web").IPs[0].String() == "10.10.1.9" })
	api.Apply(pod("web", "node-b", "10.10.1.9", "Failed"))
	f.until("its end", func() bool { return f.pod("web") == nil })
	api.Apply(denyAll + acnp("drop", "application"))
	f.until("the policies", func() bool {
		c := f.store.Snapshot()
		return len(c.AntreaPolicies) == 1 && len(c.NetworkPolicies) == 1
	})
	api.Delete("crd.antrea.io/v1beta1", "ClusterNetworkPolicy", "", "drop")
	api.Delete("networking.k8s.io/v1", "NetworkPolicy", "default", "deny")
	f.until("their end", func() bool {
		c := f.store.Snapshot()
		return len(c.AntreaPolicies)+len(c.NetworkPolicies) == 0
	})
}

// TestPodArrives: a Pod that is placed on the Node moves from one watch to the other, in either
// order of events.
func TestPodArrives(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(nodes)
	f := follow(t, api, nil).synced()
	for i := range 20 {
		name := fmt.Sprint("web-", i)
		api.Apply(pod(name, "node-b", "10.10.1.2", "Pending") + pod(name, "node-a", "10.10.0.2", "Running"))
		f.until("the pod here", func() bool { return f.pod(name) != nil && f.pod(name).NodeName == "node-a" })
	}
	api.Apply(pod("last", "node-b", "10.10.1.3", "Running"))
	f.until("the last pod", func() bool { return f.pod("last") != nil })
	if n := len(f.store.Snapshot().Pods); n != 21 {
		t.Errorf("%d pods, want 21", n)
	}
}

// TestLostWatches: watches resume or list again. In both cases only differences are applied.
func TestLostWatches(t *testing.T) {
	for _, how := range []struct {
		name string
		lose func(*kubetest.API, func())
	}{
		{"cut", func(a *kubetest.API, change func()) { a.Cut(); change() }},
		{"forgotten", func(a *kubetest.API, change func()) { change(); a.Forget(); a.Cut() }},
		{"down", func(a *kubetest.API, change func()) { a.Down(); change(); a.Up() }},
		{"down and forgotten", func(a *kubetest.API, change func()) { a.Down(); change(); a.Forget(); a.Up() }},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			api := kubetest.New(t)
			api.Apply(nodes + denyAll + pod("stays", "node-b", "10.10.1.2", "Running") + pod("goes", "node-b", "10.10.1.3", "Running") +
				pod("moves", "node-b", "10.10.1.4", "Running"))
			f := follow(t, api, nil).synced()
			stays, policies := f.pod("stays"), f.store.Snapshot().NetworkPolicies
			how.lose(api, func() {
				api.Delete("v1", "Pod", "default", "goes")
				api.Apply(pod("comes", "node-b", "10.10.1.5", "Running") + pod("moves", "node-b", "10.10.1.6", "Running"))
			})
			f.until("the difference", func() bool {
				return f.pod("comes") != nil && f.pod("goes") == nil && f.pod("moves").IPs[0].String() == "10.10.1.6"
			})
			if f.pod("stays") != stays || fmt.Sprint(f.store.Snapshot().NetworkPolicies) != fmt.Sprint(policies) {
				t.Error("an unchanged object was replaced")
			}
			for _, u := range f.seen()[1:] {
				for _, k := range u.Changed {
					if k.Name == "stays" || k.Name == "deny" || k.Kind == cluster.KindNode {
						t.Errorf("%v changed", k)
					}
				}
			}
		})
	}
}

// TestAway: while the API is away or refuses requests, all objects stay. The status has the reason.
func TestAway(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(nodes + pod("web", "node-b", "10.10.1.2", "Running"))
	f := follow(t, api, nil).synced()
	away := func(why string) bool {
		for _, s := range f.Status() {
			if s.Resource == "pods elsewhere" {
				return s.State == Away && strings.Contains(s.Reason, why) && s.Objects == 1
			}
		}
		return false
	}
	api.Down()
	f.until("the failure", func() bool { return away("refused") })
	if f.pod("web") == nil || f.Missing() != nil {
		t.Errorf("pod %v, missing %v", f.pod("web"), f.Missing())
	}
	api.Refuse(500)
	api.Up()
	f.until("the answer", func() bool { return away("made to fail") })
	if f.pod("web") == nil {
		t.Error("an API server that fails took the pod away")
	}
	api.Refuse(0)
	f.until("the watch", func() bool { return !away("") })
	if !strings.Contains(f.log.String(), "watching again") {
		t.Errorf("log:\n%s", f.log)
	}
}

// TestNotSynced: while one resource is missing, nothing enters the store.
func TestNotSynced(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(nodes)
	api.Refuse(403)
	f := follow(t, api, nil)
	f.until("a reason", func() bool {
		err := f.Missing()
		return err != nil && strings.Contains(err.Error(), "made to fail")
	})
	if len(f.seen()) != 0 {
		t.Errorf("updates: %v", f.seen())
	}
	api.Refuse(0)
	f.synced()
	if len(f.seen()) != 1 || len(f.store.Snapshot().Nodes) != 1 {
		t.Errorf("updates: %v", f.seen())
	}
}

// TestAbsentKinds: a cluster without Antrea's kinds works. A kind that appears is watched.
func TestAbsentKinds(t *testing.T) {
	api := kubetest.New(t)
	for _, k := range antreaKinds {
		api.Serve(k.plural, false)
	}
	api.Apply(nodes + acnp("drop", "application"))
	f := follow(t, api, nil).synced()
	absent := func() (n int) {
		for _, s := range f.Status() {
			if s.State == Absent {
				n++
			}
		}
		return n
	}
	if n := absent(); n != len(antreaKinds) {
		t.Errorf("%d kinds are absent: %v", n, f.Status())
	}
	api.Serve("clusternetworkpolicies", true)
	f.until("the policy", func() bool { return len(f.store.Snapshot().AntreaPolicies) == 1 })
	if n := absent(); n != len(antreaKinds)-1 {
		t.Errorf("%d kinds are absent: %v", n, f.Status())
	}
}

// TestVersions: each kind is watched in the best served version.
func TestVersions(t *testing.T) {
	there, absent := served{"v1alpha3/groups": true, "v1beta1/tiers": true, "v1alpha1/tiers": true, "v9/egresses": true}.choose()
	var got []string
	for _, r := range there {
		got = append(got, r.gvk.Version+"/"+r.plural)
	}
	if fmt.Sprint(got) != "[v1beta1/tiers v1alpha3/groups]" || len(absent) != len(antreaKinds)-2 || !absent[cluster.KindEgress] {
		t.Errorf("there %v, absent %v", got, absent)
	}
}

// TestRefused: a refused object keeps its last good state, and gets one Event and one line in the
// log. This also holds if others cause the refusal, or if antrail cannot enforce the object.
func TestRefused(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(nodes + acnp("drop", "emergency"))
	f := follow(t, api, nil).synced()
	policy := func() *cluster.AntreaPolicy {
		return f.store.Snapshot().AntreaPolicies[cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "drop"}]
	}
	good := policy()
	bad := strings.Replace(acnp("drop", "emergency"), "action: Drop", "action: Dorp", 1)
	for range 3 {
		api.Apply(bad)
	}
	f.until("the problem", func() bool { return len(f.Problems()) == 1 })
	p := f.Problems()[0]
	if policy() != good || p.Field != "spec.ingress[0].action" || !strings.Contains(p.Reason, "the last good one stays") || p.Source.String() != SourceName {
		t.Errorf("policy %v, problem %v", policy(), p)
	}
	f.until("the refused edit", func() bool {
		k := cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "drop"}
		return strings.HasPrefix(f.store.RefusedEdits()[k], "ClusterNetworkPolicy/drop: spec.ingress[0].action: ") && !strings.Contains(f.store.RefusedEdits()[k], "stays")
	})
	f.until("the Event", func() bool { return len(api.Objects("events")) == 1 })
	for _, e := range api.Objects("events") {
		about, _ := e["involvedObject"].(map[string]any)
		if about["kind"] != "ClusterNetworkPolicy" || about["name"] != "drop" || about["uid"] == "" || e["type"] != "Warning" || e["reason"] != "Refused" {
			t.Errorf("event %v", e)
		}
	}
	api.Apply(acnp("drop", "nosuch"))
	f.until("another problem", func() bool {
		all := f.Problems()
		return len(all) == 1 && strings.Contains(all[0].Reason, "there is no tier nosuch")
	})
	if policy() != good {
		t.Errorf("after an edit to a missing tier: %v", policy())
	}
	f.until("another Event", func() bool { return len(api.Objects("events")) == 2 })
	api.Apply(strings.Replace(acnp("drop", "emergency"), "action: Drop", "action: Drop, from: [{scope: ClusterSet, podSelector: {}}]", 1))
	f.until("a third problem", func() bool {
		all := f.Problems()
		return len(all) == 1 && strings.Contains(all[0].Reason, "peers of other clusters are not supported; the last good one stays")
	})
	f.until("a third Event", func() bool { return len(api.Objects("events")) == 3 })
	if policy() != good {
		t.Errorf("after an edit to what is not supported: %v", policy())
	}
	api.Apply(acnp("drop", "emergency"))
	f.until("the end of problems", func() bool { return len(f.Problems()) == 0 && policy() != nil })
	f.until("the end of refused edits", func() bool { return len(f.store.RefusedEdits()) == 0 })
	if n := strings.Count(f.log.String(), "an object is not in force"); n != 3 {
		t.Errorf("%d problems were logged:\n%s", n, f.log)
	}
}

// TestUnenforced: policies that antrail does not enforce, and fields that it does not know, appear
// in the log, in Events and in the status of the watches. A kind that cannot be listed stops
// nothing.
func TestUnenforced(t *testing.T) {
	api := kubetest.New(t)
	api.ServeAlso("policy.networking.k8s.io/v1/adminnetworkpolicies")
	api.ServeAlso("policy.networking.k8s.io/v1/baselineadminnetworkpolicies") // a list of it fails
	api.Apply(nodes + `
---
{apiVersion: policy.networking.k8s.io/v1, kind: AdminNetworkPolicy, metadata: {name: deny}, spec: {priority: 5}}
---
{apiVersion: crd.antrea.io/v1beta1, kind: Traceflow, metadata: {name: tf}, spec: {source: {pod: a}}}
---
{apiVersion: crd.antrea.io/v1beta1, kind: Egress, metadata: {name: out}, spec: {appliedTo: {podSelector: {}}, egressIP: 192.0.2.7, egressIPs: [192.0.2.8]}}
`)
	f := follow(t, api, nil).synced()
	const (
		policy = "AdminNetworkPolicy.policy.networking.k8s.io/deny: antrail does not enforce kind AdminNetworkPolicy of policy.networking.k8s.io/v1"
		trace  = "Traceflow/tf: spec.destination: Required value: must have exactly one of pod, service and ip"
		egress = "Egress/out: spec.egressIPs: Forbidden: may not be set together with egressIP"
	)
	for _, want := range []string{policy, trace, egress} {
		f.until(want, func() bool { return strings.Contains(f.log.String(), want) })
	}
	f.until("the Events", func() bool { return len(api.Objects("events")) == 3 })
	about := map[string]string{}
	for _, e := range api.Objects("events") {
		of, _ := e["involvedObject"].(map[string]any)
		about[fmt.Sprint(of["kind"], "/", of["name"])], _ = e["message"].(string)
	}
	for object, want := range map[string]string{"AdminNetworkPolicy/deny": policy, "Traceflow/tf": trace, "Egress/out": egress} {
		if _, reason, _ := strings.Cut(want, ": "); !strings.HasPrefix(about[object], reason) {
			t.Errorf("the Event about %s is %q, want %q", object, about[object], reason)
		}
	}
	refused := map[string]int{}
	for _, s := range f.Status() {
		if s.Refused > 0 {
			refused[s.Resource] = s.Refused
		}
	}
	want := map[string]int{"adminnetworkpolicies.policy.networking.k8s.io": 1, "traceflows.crd.antrea.io": 1, "egresses.crd.antrea.io": 1}
	if !maps.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
	api.Delete("policy.networking.k8s.io/v1", "AdminNetworkPolicy", "", "deny")
	f.until("the end of a problem", func() bool { return len(f.Problems()) == 2 })
}

// TestNode reads the Node's own object.
func TestNode(t *testing.T) {
	api := kubetest.New(t)
	api.Apply(nodes)
	s, err := New(Config{Kubeconfig: api.Kubeconfig(), Node: "node-a"}, store.NewStore(store.GivenEndpoints))
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Node(t.Context(), "node-a")
	if err != nil || n.PodCIDRs[0].String() != "10.10.0.0/24" || n.Addresses[0].String() != "192.168.77.102" {
		t.Errorf("node %+v, %v", n, err)
	}
	if _, err := s.Node(t.Context(), "node-x"); err == nil || !strings.Contains(err.Error(), "there is no Node/node-x") {
		t.Errorf("error %v", err)
	}
}

// TestBadConfig: an unusable kubeconfig is an error at once.
func TestBadConfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for path, want := range map[string]string{"": "kubeconfig is not given", "/nonexistent/kubeconfig": "no such file"} {
		if _, err := New(Config{Kubeconfig: path}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
