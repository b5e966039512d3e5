package answer

import (
	"reflect"
	"testing"

	"github.com/antrail/antrail/control/cluster"
	"sigs.k8s.io/yaml"
)

// TestEmptyRule: a rule that allows everything is one, though it has no field.
func TestEmptyRule(t *testing.T) {
	o := &cluster.NetworkPolicy{Ingress: true, IngressRules: []cluster.NetworkPolicyRule{{}, {Ports: []cluster.PolicyPort{{Protocol: cluster.UDP}}}}}
	text, err := yaml.Marshal(plain(reflect.ValueOf(o)))
	if err != nil {
		t.Fatal(err)
	}
	if want := "ingress: true\ningressRules:\n- {}\n- ports:\n  - protocol: UDP\n"; string(text) != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}
