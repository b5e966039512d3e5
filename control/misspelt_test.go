package control

import "testing"

// TestMisspelt: a field or kind that nobody knows is told with the one that may be
// meant; a kind of others is ignored as before.
func TestMisspelt(t *testing.T) {
	const policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespace: a}\n"
	for text, want := range map[string]string{
		policy + "spec: {podSelecter: {}}":                                  "f.yaml:4: NetworkPolicy/a/p: spec.podSelecter: unknown field (did you mean podSelector?)",
		policy + "spec: {podSelector: {}, ingress: [{form: []}]}":           "f.yaml:4: NetworkPolicy/a/p: spec.ingress[0].form: unknown field (did you mean from?)",
		policy + "spec: {podSelector: {}, ingress: [{from: [{cidr: a}]}]}":  "f.yaml:4: NetworkPolicy/a/p: spec.ingress[0].from[0].cidr: unknown field; there are podSelector, namespaceSelector, ipBlock",
		"{apiVersion: v1, kind: Servise, metadata: {name: s}}":              "f.yaml:1: there is no kind Servise of v1 (did you mean Service?)",
		"{apiVersion: v1, kind: Secret, metadata: {name: s}}":               "f.yaml:1: ignored: kind Secret of v1 is not used here",
		"{apiVersion: networking.k8s.io/v9, kind: NetworkPolicy}":           "f.yaml:1: ignored: kind NetworkPolicy of networking.k8s.io/v9 is not used here",
		"{apiVersion: crd.antrea.io/v1beta1, kind: ClusterNetworkPolicies}": "f.yaml:1: ignored: kind ClusterNetworkPolicies of crd.antrea.io/v1beta1 is not used here",
	} {
		d := Decode("f.yaml", []byte(text))
		if len(d.Problems) != 1 || d.Problems[0].Error() != want {
			t.Errorf("%s\n%v, want %q", text, d.Problems, want)
		}
	}
}
