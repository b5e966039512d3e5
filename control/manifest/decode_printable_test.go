package manifest

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/control/cluster"
)

// TestPrintableNames: control characters in an object reach no terminal.
func TestPrintableNames(t *testing.T) {
	const text = `
apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata: {name: fine}
spec:
  priority: 5
  appliedTo: [{podSelector: {}}]
  ingress: [{name: "a\e[31mb\nc", action: Drop}]
---
apiVersion: v1
kind: Pod
metadata: {name: "p\e[31m", namespace: default}
`
	d := Decode("f.yaml", []byte(text))
	if len(d.Objects) != 1 || len(d.Problems) != 1 {
		t.Fatalf("%d objects, problems %v", len(d.Objects), d.Problems)
	}
	if got, want := d.Objects[0].(*cluster.AntreaPolicy).Ingress[0].Name, `a\x1b[31mb\nc`; got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	if told := d.Problems[0].Error(); strings.Contains(told, "\x1b") || !strings.Contains(told, `Pod/default/p\x1b[31m: metadata.name`) {
		t.Errorf("told is %q", told)
	}
}
