package agent

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/host/preflight"
	"github.com/antrail/antrail/internal/kubetest"
)

// unbuiltObjects ask for what antrail does not do.
const unbuiltObjects = `
apiVersion: crd.antrea.io/v1beta1
kind: Egress
metadata: {name: limited}
spec:
  appliedTo: {podSelector: {}}
  egressIP: 192.168.77.102
  bandwidth: {rate: 10M, burst: 10M}
---
{apiVersion: policy.networking.k8s.io/v1, kind: AdminNetworkPolicy, metadata: {name: deny}, spec: {priority: 5}}
`

// getText is what a command prints of a kind.
func getText(t *testing.T, p *pipeline, path string) string {
	t.Helper()
	var b strings.Builder
	if err := answers[path].text(p, &b, query{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
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
	p, _, err := loadLive(c, c.options(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.local.Close()
	wantRefused(t, getText(t, p, "/egresses"), "limited", file+":8: spec.bandwidth: Forbidden: antrail does not limit the bandwidth of an Egress")
	wantRefused(t, getText(t, p, "/policies"), "deny", file+":10: antrail does not enforce kind AdminNetworkPolicy of policy.networking.k8s.io/v1")
	wantRefused(t, getText(t, p, "/policies"), "AdminNetworkPolicy.policy.networking.k8s.io", file+":10: ")
	offline, err := Manifests{Path: manifests, Node: "node-a"}.load(options{})
	if err != nil {
		t.Fatal(err)
	}
	defer offline.local.Close()
	wantRefused(t, getText(t, offline, "/egresses"), "limited", file+":8: spec.bandwidth: ")
	values, err := answers["/egresses"].values(p, query{})
	b, _ := json.Marshal(values)
	if err != nil || !strings.Contains(string(b), `"object":"Egress/limited"`) || !strings.Contains(string(b), `"state":"refused"`) {
		t.Errorf("%v: %s", err, b)
	}
}

// TestKubeGetRefused: so it does with objects of the API.
func TestKubeGetRefused(t *testing.T) {
	api := kubetest.New(t)
	api.ServeAlso("policy.networking.k8s.io/v1/adminnetworkpolicies")
	api.Apply(clusterObjects + "---" + unbuiltObjects)
	a := startKube(t, kubeConfig(t, api))
	a.until("the first state", a.synced)
	a.until("the policy", func() bool { return strings.Contains(getText(t, a.pipeline, "/policies"), "deny") })
	wantRefused(t, getText(t, a.pipeline, "/egresses"), "limited", "kubernetes: spec.bandwidth: Forbidden: antrail does not limit the bandwidth of an Egress")
	line := a.checkObjects()
	if line.State != preflight.Warn || !strings.HasPrefix(line.Found, "2 of ") || !strings.Contains(line.Found, "AdminNetworkPolicy.policy.networking.k8s.io/deny, is refused") {
		t.Errorf("check --live: %+v", line)
	}
	wantRefused(t, getText(t, a.pipeline, "/policies"), "deny", "kubernetes: antrail does not enforce kind AdminNetworkPolicy of policy.networking.k8s.io/v1")
}
