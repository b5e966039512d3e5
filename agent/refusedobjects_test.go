package agent

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/host/preflight"
	"github.com/antrail/antrail/internal/kubetest"
	"github.com/prometheus/client_golang/prometheus"
)

// unbuiltObjects ask for what antrail does not do.
const unbuiltObjects = `
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: limited}
spec:
  appliedTo: {podSelector: {}}
  egressIP: 192.168.77.102
  bandwidth: {rate: fast, burst: 10M}
---
{apiVersion: policy.networking.k8s.io/v1, kind: AdminNetworkPolicy, metadata: {name: deny}, spec: {priority: 5}}
`

// getText is what a command prints of a kind.
func getText(t *testing.T, p *pipeline.Pipeline, path string) string {
	t.Helper()
	code, text := getPath(t, answer.New(p).Routes(prometheus.NewRegistry()), path)
	if code != http.StatusOK {
		t.Fatal(code, text)
	}
	return text
}

// wantRefused wants a line of get that has an object's name and is refused for a reason.
func wantRefused(t *testing.T, text, name, reason string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.Contains(line, name) && strings.Contains(line, "refused: "+reason) {
			return
		}
	}
	t.Errorf("no line of %s with %q in\n%s", name, reason, text)
}

// TestGetRefused: get shows an object that was refused when it came, as refused, with the
// place in its manifest.
func TestGetRefused(t *testing.T) {
	c, manifests := liveNode(t)
	file := filepath.Join(manifests, "unbuilt.yaml")
	if err := os.WriteFile(file, []byte(unbuiltObjects), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _, err := loadNew(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Local.Close()
	wantRefused(t, getText(t, p, "/egresses"), "limited", file+":8: spec.bandwidth.rate: Invalid value: \"fast\": is not a number of bits")
	wantRefused(t, getText(t, p, "/policies"), "deny", file+":10: antrail does not enforce kind AdminNetworkPolicy of policy.networking.k8s.io/v1")
	wantRefused(t, getText(t, p, "/policies"), "AdminNetworkPolicy.policy.networking.k8s.io", file+":10: ")
	offline, err := pipeline.Manifests{Path: manifests, Node: "node-a"}.Load(pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer offline.Local.Close()
	wantRefused(t, getText(t, offline, "/egresses"), "limited", file+":8: spec.bandwidth.rate: ")
	values := getText(t, p, "/egresses?format=json")
	if !strings.Contains(values, `"object": "Egress/limited"`) || !strings.Contains(values, `"state": "refused"`) {
		t.Error(values)
	}
}

// TestKubeGetRefused: so it does with objects of the API.
func TestKubeGetRefused(t *testing.T) {
	api := kubetest.New(t)
	api.ServeAlso("policy.networking.k8s.io/v1/adminnetworkpolicies")
	api.Apply(clusterObjects + "---" + unbuiltObjects)
	a := startKube(t, kubeConfig(t, api), nil)
	a.until("the first state", a.synced)
	a.until("the policy", func() bool { return strings.Contains(getText(t, a.Pipeline, "/policies"), "deny") })
	wantRefused(t, getText(t, a.Pipeline, "/egresses"), "limited", "kubernetes: spec.bandwidth.rate: Invalid value: \"fast\": is not a number of bits")
	line := a.checkObjects()
	if line.State != preflight.Warn || !strings.HasPrefix(line.Found, "2 of ") || !strings.Contains(line.Found, "AdminNetworkPolicy.policy.networking.k8s.io/deny, is refused") {
		t.Errorf("check --live: %+v", line)
	}
	wantRefused(t, getText(t, a.Pipeline, "/policies"), "deny", "kubernetes: antrail does not enforce kind AdminNetworkPolicy of policy.networking.k8s.io/v1")
}
