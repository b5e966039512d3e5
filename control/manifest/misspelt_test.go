package manifest

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// TestMisspelt: the problem of an unknown field or kind suggests a similar one. Kinds of other projects
// are ignored.
func TestMisspelt(t *testing.T) {
	const policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespace: a}\n"
	for text, want := range map[string]string{
		policy + "spec: {podSelecter: {}}":                                  "f.yaml:4: NetworkPolicy/a/p: spec.podSelecter: unknown field (did you mean podSelector?)",
		policy + "spec: {podSelector: {}, ingress: [{form: []}]}":           "f.yaml:4: NetworkPolicy/a/p: spec.ingress[0].form: unknown field (did you mean from?)",
		policy + "spec: {podSelector: {}, ingress: [{from: [{cidr: a}]}]}":  "f.yaml:4: NetworkPolicy/a/p: spec.ingress[0].from[0].cidr: unknown field; there are podSelector, namespaceSelector, ipBlock",
		"{apiVersion: v1, kind: Servise, metadata: {name: s}}":              "f.yaml:1: there is no kind Servise of v1 (did you mean Service?)",
		"{apiVersion: v1, kind: Secret, metadata: {name: s}}":               "f.yaml:1: ignored: kind Secret of v1 is not used here",
		"{apiVersion: serving.knative.dev/v1, kind: Service}":               "f.yaml:1: ignored: kind Service of serving.knative.dev/v1 is not used here",
		"{apiVersion: crd.antrea.io/v1beta1, kind: ClusterNetworkPolicies}": "f.yaml:1: antrail does not have kind ClusterNetworkPolicies of crd.antrea.io/v1beta1",
	} {
		d := Decode("f.yaml", []byte(text))
		if len(d.Problems) != 1 || d.Problems[0].Error() != want {
			t.Errorf("%s\n%v, want %q", text, d.Problems, want)
		}
	}
}

// TestOtherVersions: an object of a known kind in an unread version is refused. The problem has its place
// and the versions that are read, and its former state stays.
func TestOtherVersions(t *testing.T) {
	const named = ", metadata: {name: p, namespace: a}}"
	for text, want := range map[string]struct {
		why string
		key cluster.Key
	}{
		"{apiVersion: networking.k8s.io/v1beta1, kind: NetworkPolicy" + named: {
			"f.yaml:1: NetworkPolicy/a/p: kind NetworkPolicy of networking.k8s.io/v1beta1 is not known here, but of networking.k8s.io/v1",
			cluster.Key{Kind: cluster.KindNetworkPolicy, Namespace: "a", Name: "p"}},
		"{apiVersion: crd.antrea.io/v1alpha2, kind: ClusterNetworkPolicy" + named: {
			"f.yaml:1: ClusterNetworkPolicy/p: kind ClusterNetworkPolicy of crd.antrea.io/v1alpha2 is not known here, but of crd.antrea.io/v1beta1 or crd.antrea.io/v1alpha1",
			cluster.Key{Kind: cluster.KindClusterNetworkPolicy, Name: "p"}},
		"{apiVersion: v1beta1, kind: EndpointSlice" + named: {
			"f.yaml:1: kind EndpointSlice of v1beta1 is not known here, but of discovery.k8s.io/v1", cluster.Key{}},
		"{apiVersion: extensions/v1beta1, kind: NetworkPolicy" + named: {
			"f.yaml:1: kind NetworkPolicy of extensions/v1beta1 is not known here, but of networking.k8s.io/v1 or crd.antrea.io/v1beta1 or crd.antrea.io/v1alpha1", cluster.Key{}},
		"{apiVersion: networking.k8s.io/v1, kind: Egress" + named: {
			"f.yaml:1: kind Egress of networking.k8s.io/v1 is not known here, but of crd.antrea.io/v1beta1 or crd.antrea.io/v1alpha2", cluster.Key{}},
		"{apiVersion: v2, kind: List, items: [{kind: Pod" + named + "]}": {
			"f.yaml:1: Pod/a/p: kind Pod of v2 is not known here, but of v1", cluster.Key{Kind: cluster.KindPod, Namespace: "a", Name: "p"}},
	} {
		d := Decode("f.yaml", []byte(text))
		if len(d.Problems) != 1 || d.Problems[0].Error() != want.why || d.Problems[0].Ignored {
			t.Errorf("%s\n%v, want %q", text, d.Problems, want.why)
		}
		if (want.key == cluster.Key{}) != (len(d.Refused) == 0) || len(d.Refused) > 0 && d.Refused[0] != want.key {
			t.Errorf("%s: refused %v, want %v", text, d.Refused, want.key)
		}
	}
}

// TestUnenforced: an object of a kind that antrail does not enforce is refused with its place and name.
// Other kinds of the same group may be ignored.
func TestUnenforced(t *testing.T) {
	const (
		named    = ", metadata: {name: p}}"
		enforced = "; it enforces NetworkPolicy of networking.k8s.io/v1, and ClusterNetworkPolicy and NetworkPolicy of crd.antrea.io/v1beta1"
	)
	for text, want := range map[string]string{
		"{apiVersion: policy.networking.k8s.io/v1alpha1, kind: AdminNetworkPolicy" + named:         "AdminNetworkPolicy.policy.networking.k8s.io/p: antrail does not enforce kind AdminNetworkPolicy of policy.networking.k8s.io/v1alpha1" + enforced,
		"{apiVersion: policy.networking.k8s.io/v1alpha1, kind: BaselineAdminNetworkPolicy" + named: "BaselineAdminNetworkPolicy.policy.networking.k8s.io/p: antrail does not enforce kind BaselineAdminNetworkPolicy of policy.networking.k8s.io/v1alpha1" + enforced,
		"{apiVersion: policy.networking.k8s.io/v1alpha2, kind: ClusterNetworkPolicy" + named:       "ClusterNetworkPolicy.policy.networking.k8s.io/p: antrail does not enforce kind ClusterNetworkPolicy of policy.networking.k8s.io/v1alpha2" + enforced,
		"{apiVersion: crd.antrea.io/v1alpha1, kind: PacketCapture" + named:                         "PacketCapture.crd.antrea.io/p: antrail does not have kind PacketCapture of crd.antrea.io/v1alpha1; antrail capture records packets",
		"{apiVersion: crd.antrea.io/v1alpha1, kind: BGPPolicy" + named:                             "BGPPolicy.crd.antrea.io/p: antrail does not have kind BGPPolicy of crd.antrea.io/v1alpha1",
		"{apiVersion: cilium.io/v2, kind: CiliumNetworkPolicy, metadata: {name: p, namespace: a}}": "CiliumNetworkPolicy.cilium.io/a/p: antrail does not enforce kind CiliumNetworkPolicy of cilium.io/v2" + enforced,
		"{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: p}}":             "NetworkPolicy.projectcalico.org/p: antrail does not enforce kind NetworkPolicy of projectcalico.org/v3" + enforced,
		"{apiVersion: policy.networking.k8s.io/v1alpha1, kind: AdminNetworkPolicy}":                "antrail does not enforce kind AdminNetworkPolicy of policy.networking.k8s.io/v1alpha1" + enforced,
		"{apiVersion: crd.antrea.io/v1beta1, kind: AntreaAgentInfo" + named:                        "ignored: kind AntreaAgentInfo of crd.antrea.io/v1beta1 is not used here",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget" + named:                                "ignored: kind PodDisruptionBudget of policy/v1 is not used here",
	} {
		d := Decode("f.yaml", []byte(text))
		if len(d.Problems) != 1 || d.Problems[0].Error() != "f.yaml:1: "+want || d.Problems[0].Ignored != strings.HasPrefix(want, "ignored") || len(d.Refused) > 0 {
			t.Errorf("%s\n%v, want %q", text, d.Problems, want)
		}
	}
}
