package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/control/store"
	"github.com/antrail/antrail/internal/kubetest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// quickPace is for tests: after a second and a half of silence, an agent does not count.
var quickPace = pace{
	gather: 10 * time.Millisecond, least: 50 * time.Millisecond, beat: 300 * time.Millisecond, quiet: 1500 * time.Millisecond,
	absent: 100 * time.Millisecond, look: 300 * time.Millisecond,
}

// statusAPI is an API server whose objects a test can read.
type statusAPI interface {
	server
	// find returns an object by its apiVersion, kind, namespace and name, or nil.
	find(apiVersion, kind, namespace, name string) map[string]any
	// writes counts the requests of agents by verb and resource.
	writes(what string) int
}

type fakeStatus struct{ *kubetest.API }

func (f fakeStatus) find(apiVersion, kind, namespace, name string) map[string]any {
	return f.Objects(kubetest.PluralOf(kind))[namespace+"/"+name]
}

func (f fakeStatus) writes(what string) int { return f.Requests(what) }

// statusNode is a Node with a switch in memory, which reports the state of its policies.
type statusNode struct {
	*following
	name string
	r    *control.Reconciler
	stop func()

	mu    sync.Mutex
	wait  chan struct{}
	alter func(*Report) // changes the report; nil: no change
}

func (n *statusNode) Report() (Report, bool) {
	p, known := n.r.Progress()
	r := Report{Progress: p, Version: "v0"}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.alter != nil {
		n.alter(&r)
	}
	return r, known
}

func (n *statusNode) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wait == nil {
		n.wait = make(chan struct{})
	}
	return n.wait
}

func (n *statusNode) Spans() *policy.Spans { return n.r.Spans() }

// tells sets a change of the Node's report.
func (n *statusNode) tells(alter func(*Report)) {
	n.mu.Lock()
	n.alter = alter
	n.mu.Unlock()
	n.raise()
}

func (n *statusNode) raise() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.wait != nil {
		close(n.wait)
		n.wait = nil
	}
}

// newStatusNode starts a Node that follows an API server and reports.
func newStatusNode(t *testing.T, api server, name string) *statusNode {
	t.Helper()
	n := &statusNode{name: name, r: control.NewReconciler(name, ledger.NewMemorySwitch(), time.Now)}
	n.following = followAs(t, api, name, func(s *Source) { s.pace = quickPace })
	key := cluster.Key{Kind: cluster.KindNodeConfig, Name: name}
	n.store.Apply(store.Change{Source: "configuration", Set: []cluster.Object{&cluster.NodeConfig{
		Meta:    cluster.Meta{Key: key, Source: cluster.Source{File: "configuration"}},
		Gateway: cluster.GatewayPort{Name: "antrea-gw0", OFPort: 2, MAC: [6]byte{2, 0, 0, 0, 0, 1}},
		Tunnel:  cluster.TunnelPort{Name: "antrea-tun0", OFPort: 1, Type: "geneve"},
	}}})
	n.synced()
	now, _ := n.store.Follow(func(u store.Update) {
		if err := n.r.Update(u.New, u.Changed); err != nil && u.New.Node(name) != nil {
			t.Error(err)
		}
		n.raise()
	})
	if err := n.r.Update(now, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { n.RunStatus(ctx, n) })
	n.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(n.stop)
	return n
}

const otherNode = `
apiVersion: v1
kind: Node
metadata: {name: node-b}
spec: {podCIDR: 10.10.1.0/24, podCIDRs: [10.10.1.0/24]}
status: {addresses: [{type: InternalIP, address: 192.168.77.103}]}
---`

// here is a policy of a namespace that applies to the Pod web.
const annp = `
apiVersion: crd.antrea.io/v1beta1
kind: NetworkPolicy
metadata: {name: here}
spec: {priority: 5, appliedTo: [{podSelector: {matchLabels: {only: here}}}], ingress: [{action: Drop}]}
---`

// policyLine is a policy's status as a line: phase, generation, Nodes, conditions.
func policyLine(api statusAPI, kind, namespace, name string) string {
	o := api.find("crd.antrea.io/v1beta1", kind, namespace, name)
	if o["status"] == nil {
		return "none"
	}
	s := readStatus(o)
	line := fmt.Sprintf("%s %d %d/%d", s.Phase, s.ObservedGeneration, s.CurrentNodesRealized, s.DesiredNodesRealized)
	for _, c := range s.Conditions {
		line += " " + c.Type + "=" + c.Status
		if c.Message != "" {
			line += " (" + c.Reason + ": " + c.Message + ")"
		}
		if c.LastTransitionTime.IsZero() {
			line += " at no time"
		}
	}
	return line
}

// stands waits until a policy's status is a given line.
func (n *statusNode) stands(api statusAPI, kind, namespace, name, want string) {
	n.t.Helper()
	got := ""
	n.t.Cleanup(func() {
		if n.t.Failed() {
			n.t.Logf("%s: %s", name, got)
		}
	})
	n.until(name+" is "+want, func() bool {
		got = policyLine(api, kind, namespace, name)
		return got == want || strings.HasSuffix(want, "…") && strings.HasPrefix(got, strings.TrimSuffix(want, "…"))
	})
}

func holder(api statusAPI) string {
	spec, _ := api.find("coordination.k8s.io/v1", "Lease", "kube-system", leaseName)["spec"].(map[string]any)
	name, _ := spec["holderIdentity"].(string)
	return name
}

const acnpKind = "ClusterNetworkPolicy"

// statusStory: one of two Nodes sums up the reports of both.
func statusStory(t *testing.T, api statusAPI) {
	const realised = "Realized 1 2/2 Realizable=True"
	api.Apply(otherNode + pod("web", "node-a", "10.10.0.2", "Running") + pod("far", "node-b", "10.10.1.2", "Running"))
	api.Apply(acnp("drop", "emergency") + acnp("nosuch", "nosuch") + annp)
	a := newStatusNode(t, api, "node-a")
	a.until("a Lease", func() bool { return holder(api) == "node-a" })
	a.stands(api, acnpKind, "", "drop", "Realizing 1 1/2 Realizable=True")
	b := newStatusNode(t, api, "node-b")
	nodes := map[string]*statusNode{"node-a": a, "node-b": b}
	a.stands(api, acnpKind, "", "drop", realised)
	a.stands(api, "NetworkPolicy", "default", "here", "Realized 1 0/0 Realizable=True")
	a.stands(api, acnpKind, "", "nosuch", "Pending 1 0/0 Realizable=False (Refused: spec.tier: there is no tier nosuch)")

	b.tells(func(r *Report) { // the last generation is not yet in force there
		for i := range r.Policies {
			r.Policies[i].State, r.Policies[i].Reason = ledger.Pending, ""
		}
	})
	api.Apply(strings.Replace(acnp("drop", "emergency"), "priority: 5", "priority: 6", 1))
	a.stands(api, acnpKind, "", "drop", "Realizing 2 1/2 Realizable=True")
	b.tells(func(r *Report) {
		for i := range r.Policies {
			r.Policies[i].State, r.Policies[i].Reason = ledger.Pending, "no room"
		}
	})
	a.stands(api, acnpKind, "", "drop", `Failed 2 1/2 Realizable=True RealizationFailure=True (`+reasonFailure+`: Failed Nodes count 1: "node-b":"no room")`)
	b.tells(nil)
	a.stands(api, acnpKind, "", "drop", strings.Replace(realised, "1", "2", 1))

	api.Apply(strings.Replace(acnp("drop", "emergency"), "ingress: [{action: Drop}]", "ingress: [{action: Drop, ports: [{endPort: 7}]}]", 1))
	a.stands(api, acnpKind, "", "drop", "Pending 3 0/0 Realizable=False (Refused: spec.ingress[0].ports[0].endPort: Forbidden…")
	api.Apply(acnp("drop", "emergency"))
	a.stands(api, acnpKind, "", "drop", strings.Replace(realised, "1", "4", 1))

	before := api.writes("patch clusternetworkpolicies/status") + api.writes("patch networkpolicies/status")
	beats := api.writes("patch antreaagentinfos")
	a.until("more reports", func() bool { return api.writes("patch antreaagentinfos") > beats+6 })
	if n := api.writes("patch clusternetworkpolicies/status") + api.writes("patch networkpolicies/status") - before; n > 0 {
		t.Errorf("%d statuses were written again", n)
	}

	nodes["node-a"].stop() // the Node that sums up ends
	b.until("the Lease", func() bool { return holder(api) == "node-b" })
	b.stands(api, acnpKind, "", "drop", "Realizing 4 1/2 Realizable=True")
	api.Delete("v1", "Pod", "default", "web")
	b.stands(api, acnpKind, "", "drop", "Realized 4 1/1 Realizable=True")
	api.Apply(pod("web", "node-a", "10.10.0.2", "Running"))
	b.stands(api, acnpKind, "", "drop", "Realizing 4 1/2 Realizable=True")
	api.Delete("v1", "Node", "", "node-a")
	b.stands(api, acnpKind, "", "drop", "Realized 4 1/1 Realizable=True")
	a.allowed()
	b.allowed()
}

// allowed fails if the source sent a request that it has no right for.
func (f *following) allowed() {
	f.t.Helper()
	if strings.Contains(f.log.String(), "forbidden") {
		f.t.Errorf("log:\n%s", f.log)
	}
}

func TestStatus(t *testing.T) {
	api := fakeStatus{kubetest.New(t)}
	api.Apply(nodes)
	statusStory(t, api)
}

// TestStatusConflict: if the policy has changed meanwhile, the API server refuses the status, and the
// agent computes it again.
func TestStatusConflict(t *testing.T) {
	api := fakeStatus{kubetest.New(t)}
	api.Apply(nodes + pod("web", "node-a", "10.10.0.2", "Running"))
	const write = "patch clusternetworkpolicies/status"
	api.Before(write, func() {
		api.Apply(strings.Replace(acnp("drop", "emergency"), "priority: 5", "priority: 6", 1))
	})
	api.Apply(acnp("drop", "emergency"))
	n := newStatusNode(t, api, "node-a")
	n.stands(api, acnpKind, "", "drop", "Realized 2 1/1 Realizable=True")
	refused := api.writes("conflict " + write) // more than one if the change is seen late
	if taken := api.writes(write) - refused; refused == 0 || taken < 1 || taken > 2 {
		t.Errorf("%d writes were refused, %d accepted: want a refusal, and Realized, perhaps after Realizing", refused, taken)
	}
}

// TestStatusRefused: if an API server accepts no status, the agent tries seldom, and logs the reason
// once.
func TestStatusRefused(t *testing.T) {
	api := fakeStatus{kubetest.New(t)}
	api.Apply(nodes)
	api.Apply(acnp("drop", "emergency") + acnp("reject", "emergency"))
	const write = "patch clusternetworkpolicies/status"
	api.Before(write, func() { api.Refuse(403) }) // from the first write on
	n := newStatusNode(t, api, "node-a")
	n.until("the warning", func() bool { return strings.Contains(n.log.String(), "the status of a policy cannot be written") })
}

// TestAgentInfo: a Node's AntreaAgentInfo is written once a beat and when the state of its policies
// changes, and is deleted with the Node. Without the kind, the agent tries seldom.
func TestAgentInfo(t *testing.T) {
	api := fakeStatus{kubetest.New(t)}
	api.Serve("antreaagentinfos", false)
	api.Apply(nodes + pod("web", "node-a", "10.10.0.2", "Running") + acnp("drop", "emergency"))
	n := newStatusNode(t, api, "node-a")
	n.until("a second look for the kind", func() bool { return api.writes("create antreaagentinfos") == 2 })
	if leases := api.writes("get leases"); leases > 0 {
		t.Errorf("the Lease was read %d times without reports", leases)
	}
	api.Serve("antreaagentinfos", true)
	n.tells(func(r *Report) {
		r.Subnets, r.PodNamespace, r.PodName = []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24")}, "kube-system", "antrail-x"
		r.Unhealthy = errors.New("workers: worker 0 does not turn")
	})
	var info map[string]any
	n.until("the report", func() bool {
		info = api.find("crd.antrea.io/v1beta1", "AntreaAgentInfo", "", "node-a")
		return info["podRef"] != nil
	})
	conditions, _ := info["agentConditions"].([]any)
	condition, _ := conditions[0].(map[string]any)
	owners := info["metadata"].(map[string]any)["ownerReferences"].([]any)[0].(map[string]any)
	if at := heartbeat(&unstructured.Unstructured{Object: info}); time.Since(at) > time.Minute || condition["type"] != "AgentHealthy" ||
		condition["status"] != "False" || condition["message"] != "workers: worker 0 does not turn" {
		t.Errorf("conditions %v", conditions)
	}
	counts := fmt.Sprintf("%v %v %v %v %v %v", info["localPodNum"], info["networkPolicyControllerInfo"], info["nodeSubnets"], info["version"], info["nodeRef"], info["podRef"])
	if counts != "0 map[addressGroupNum:0 appliedToGroupNum:0 networkPolicyNum:1] [10.10.0.0/24] v0 map[kind:Node name:node-a] map[kind:Pod name:antrail-x namespace:kube-system]" ||
		owners["kind"] != "Node" || owners["name"] != "node-a" || owners["uid"] == "" {
		t.Errorf("info %s, owners %v", counts, owners)
	}
	r := readReport(&unstructured.Unstructured{Object: info})
	policy := api.find("crd.antrea.io/v1beta1", acnpKind, "", "drop")["metadata"].(map[string]any)
	if !r.realised.has(markOf(types.UID(policy["uid"].(string)), 1)) || len(r.realised) != len(mark{}) || len(r.failed) > 0 {
		t.Errorf("report %+v", r)
	}
	api.Delete("crd.antrea.io/v1beta1", "AntreaAgentInfo", "", "node-a")
	n.until("another", func() bool { return api.find("crd.antrea.io/v1beta1", "AntreaAgentInfo", "", "node-a") != nil })
}

// TestMarks finds each of many marks, and no other.
func TestMarks(t *testing.T) {
	var r Report
	const n = 300
	for i := range n {
		r.Policies = append(r.Policies, control.PolicyProgress{State: ledger.Installed,
			Policy: &cluster.AntreaPolicy{UID: fmt.Sprint("u", i), Generation: int64(i % 3)}})
	}
	r.Policies = append(r.Policies, control.PolicyProgress{State: ledger.Pending, Policy: &cluster.AntreaPolicy{UID: "waits"}})
	realised, failed := r.policies()
	info := &unstructured.Unstructured{Object: map[string]any{}}
	info.SetAnnotations(map[string]string{realisedAnnotation: realised, failedAnnotation: failed})
	got := readReport(info)
	for i := range n {
		uid := types.UID(fmt.Sprint("u", i))
		if !got.realised.has(markOf(uid, int64(i%3))) || got.realised.has(markOf(uid, 7)) {
			t.Fatalf("policy %d of %d", i, n)
		}
	}
	if got.realised.has(markOf("waits", 0)) || len(got.failed) > 0 || (&nodeReport{}).realised.has(mark{}) {
		t.Error("a policy that only waits is realised or failed")
	}
}

// BenchmarkStatusWriter computes all sums of 10,000 policies, in a cluster of 1,000 Nodes with ten Pods
// each. Each policy applies to ten Pods, or to every Node.
func BenchmarkStatusWriter(b *testing.B) {
	for _, wide := range []bool{false, true} {
		b.Run(fmt.Sprintf("wide=%v", wide), func(b *testing.B) {
			const nodes, policies = 1000, 10000
			var all []mark
			for i := range policies {
				all = append(all, markOf(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), 1))
			}
			names, reports := make([]string, nodes), newReportStore(time.Hour)
			span := 10
			if wide {
				span = nodes
			}
			for n := range nodes {
				names[n] = fmt.Sprint("node-", n)
				reports.of[names[n]] = &nodeReport{}
			}
			held := map[string][]mark{}
			spans := make([][]string, policies)
			for i, m := range all {
				at := i % (nodes - span + 1)
				spans[i] = names[at : at+span]
				for _, name := range spans[i] {
					held[name] = append(held[name], m)
				}
			}
			for name, list := range held {
				slices.SortFunc(list, func(a, b mark) int { return bytes.Compare(a[:], b[:]) })
				var plain []byte
				for _, m := range list {
					plain = append(plain, m[:]...)
				}
				reports.of[name].realised = marks(plain)
			}
			for b.Loop() {
				for i, m := range all {
					if current, _ := reports.count(m, spans[i]); current != span {
						b.Fatal(current)
					}
				}
			}
		})
	}
}
