//go:build k8s

package kube

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/control/cluster"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestRealRights: the agent uses all rights that deploy/ grants and no others. It only watches an
// API server that streams lists; it also lists from an older one.
func TestRealRights(t *testing.T) {
	requests := map[string]int{}
	for what, flags := range map[string][]string{"lists are streamed": nil, "they are not": {"--feature-gates", "WatchList=false"}} {
		t.Run(what, func(t *testing.T) {
			api := newReal(t, true, flags...)
			api.applyUnenforced()
			f := follow(t, api, nil).synced()
			if own, err := f.Node(t.Context(), "node-a"); err != nil || own.Key.Name != "node-a" {
				t.Errorf("the Node: %+v, %v", own, err)
			}
			if ranges, err := f.ServiceCIDRs(t.Context()); err != nil || len(ranges) != 1 {
				t.Errorf("ranges of Services: %v, %v", ranges, err)
			}
			api.Apply(strings.Replace(acnp("drop", "emergency"), "ingress: [{action: Drop}]", "ingress: [{action: Drop, ports: [{endPort: 7}]}]", 1))
			f.until("the Event", func() bool {
				return len(api.List("/api/v1/namespaces/default/events?fieldSelector=reason=Refused")) == 1
			})
			api.Apply(annp)
			n, status := newStatusNode(t, api, "node-a"), realStatus{api}
			n.stands(status, acnpKind, "", "drop", "Pending…")
			n.stands(status, "NetworkPolicy", "default", "here", "Realized…")
			traced(t, api, f)
			n.until("the Lease's renewal", func() bool { return status.writes("update leases") > 0 })
			f.allowed()
			maps.Copy(requests, api.Requests())
		})
	}
	may := granted(t)
	for _, k := range slices.Sorted(maps.Keys(may)) {
		if requests[k] == 0 {
			t.Errorf("%s is allowed, but never requested", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(requests)) {
		if !may[k] {
			t.Errorf("%s is requested, but not allowed", k)
		}
	}
}

// traced writes the status of a Traceflow, then writes it with fewer fields.
func traced(t *testing.T, api *realAPI, f *following) {
	api.Apply("{apiVersion: crd.antrea.io/v1beta1, kind: Traceflow, metadata: {name: tf}, spec: {source: {pod: a}, destination: {ip: 192.0.2.1}}}")
	write := func(s cluster.TraceflowStatus) {
		t.Helper()
		k := cluster.Key{Kind: cluster.KindTraceflow, Name: "tf"}
		var was *cluster.Traceflow
		f.until("the Traceflow", func() bool { was = f.store.Snapshot().Traceflows[k]; return was != nil })
		if err := f.WriteTraceflow(t.Context(), was, &s); err != nil {
			t.Fatal(err)
		}
		f.until("its status", func() bool { return reflect.DeepEqual(f.store.Snapshot().Traceflows[k].Status, s) })
		if err := f.WriteTraceflow(t.Context(), was, &cluster.TraceflowStatus{}); err != nil {
			t.Errorf("for an older state: %v", err)
		}
	}
	now := time.Unix(1e9, 0).UTC()
	s := cluster.TraceflowStatus{Phase: cluster.TraceflowRunning, StartTime: &now, Tag: 7}
	write(s)
	s.Phase, s.Tag = cluster.TraceflowSucceeded, 0
	s.Results = []cluster.TraceflowResult{{Node: "node-a", Timestamp: 5, Observations: []cluster.Observation{{Component: "LB", Action: cluster.ActionForwarded, TranslatedDstIP: "10.0.0.1"}}}}
	write(s)
	if got := f.store.Snapshot().Traceflows[cluster.Key{Kind: cluster.KindTraceflow, Name: "tf"}].Status; !reflect.DeepEqual(got, s) {
		t.Errorf("after writes for older states: %+v", got)
	}
}

// applyUnenforced creates the kinds that antrail does not enforce, and waits until they are served.
func (r *realAPI) applyUnenforced() {
	r.t.Helper()
	for _, k := range unenforcedKinds {
		r.Apply(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[3]s.%[1]s, annotations: {api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: %[1]s
  names: {kind: %[2]s, plural: %[3]s}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, k.group, k.name, k.plural))
	}
	f := &following{t: r.t, log: &lines{}, Source: &Source{}}
	f.until("the kinds that are not enforced", func() bool {
		for _, k := range unenforcedKinds {
			if !r.Has("/apis/" + k.group + "/v1/" + k.plural) {
				return false
			}
		}
		return true
	})
}

// granted returns the rights of the ClusterRole, in the words of kubetest.Real.Requests.
func granted(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(rolesFile)
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]bool{}
	for doc := range strings.SplitSeq(string(text), "\n---") {
		role := rbacv1.ClusterRole{}
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		for _, r := range role.Rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, verb := range r.Verbs {
						may[fmt.Sprintf("%s %q %s", verb, group, resource)] = true
					}
				}
			}
		}
	}
	if len(may) == 0 {
		t.Fatalf("%s allows nothing", rolesFile)
	}
	return may
}
