package agent

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/host/preflight"
	"github.com/antrail/antrail/internal/antrailtest"
)

// editedAgent is an agent of live manifests that a test edits.
type editedAgent struct {
	*Agent
	t         *testing.T
	manifests string
	routes    http.Handler
}

func newEditedAgent(t *testing.T) *editedAgent {
	t.Helper()
	a, manifests := loadedAgent(t, "")
	a.live.setNode = func(*ledger.NodeSide) error { return nil }
	_, end := a.live.store.Follow(a.live.update)
	t.Cleanup(end)
	a.ready.Store(true)
	mux := a.answers.Routes(a.metricsRegistry())
	a.addHealth(mux)
	return &editedAgent{a, t, manifests, mux}
}

// edit replaces text in a file of the manifests, and has it read.
func (a *editedAgent) edit(file, old, new string) {
	a.t.Helper()
	antrailtest.ReplaceIn(a.t, filepath.Join(a.manifests, file), old, new)
	a.live.manifests.Read()
}

// line is the line of an answer that has all words; "" for none.
func (a *editedAgent) line(path string, words ...string) string {
	a.t.Helper()
	code, text := getPath(a.t, a.routes, path)
	if code != 200 {
		a.t.Errorf("%s: %d", path, code)
	}
	for line := range strings.Lines(text) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return strings.TrimSpace(strings.ReplaceAll(line, a.manifests+"/", ""))
		}
	}
	return ""
}

func (a *editedAgent) notes(from, to string) string {
	a.t.Helper()
	answer, err := a.Why(&api.WhyRequest{From: from, To: to})
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.ReplaceAll(strings.Join(answer.Notes, "\n"), a.manifests+"/", "")
}

const refusedPort = "policies.yaml:10: spec.ingress[0].ports[0].port: Invalid value: 330600: must be between 1 and 65535, inclusive"

// TestRefusedEditIsShown: an edit that is refused is shown at its object by each command,
// and no more when it is mended.
func TestRefusedEditIsShown(t *testing.T) {
	a := newEditedAgent(t)
	wantNone := func(when string) {
		t.Helper()
		if l := a.line("/readyz", "edits: "); l != "edits: ok" {
			t.Errorf("%s: %s", when, l)
		}
		if l := a.checkEdits(); l.State != preflight.OK {
			t.Errorf("%s: %+v", when, l)
		}
		for _, path := range []string{"/policies", "/policies?format=json", "/policies?wide=1"} {
			for _, words := range []string{"policies.yaml:", "editRefused"} {
				if l := a.line(path, words); l != "" {
					t.Errorf("%s: %s: %s", when, path, l)
				}
			}
		}
		if l := a.line("/metrics", "antrail_objects_edit_refused{"); l != "" {
			t.Errorf("%s: %s", when, l)
		}
		if n := a.notes("default/web-a", "default/db-a:3306"); n != "" {
			t.Errorf("%s: why: %s", when, n)
		}
	}
	wantNone("before")

	a.edit("policies.yaml", "port: 3306}", "port: 330600}")
	if l := a.line("/policies", "db-from-web"); !strings.HasSuffix(l, "installed, edit refused: "+refusedPort) {
		t.Errorf("get policies: %s", l)
	}
	if l := a.line("/policies?wide=1", "db-from-web"); !strings.HasSuffix(l, "installed  "+refusedPort) {
		t.Errorf("get policies -o wide: %s", l)
	}
	if l := a.line("/policies?format=json", `"object": "NetworkPolicy/default/db-from-web"`); l == "" {
		t.Error("get policies -o json has no such policy")
	}
	if l := a.line("/policies?format=json", `"editRefused": "`+a.manifests+"/"+refusedPort+`"`); l == "" {
		t.Error("get policies -o json has no field editRefused")
	}
	if l := a.line("/explain?what=NetworkPolicy/default/db-from-web", "installed, edit refused: "); l == "" {
		t.Error("explain says nothing")
	}
	const text = "the edit of 1 object is refused, its state before is in force: NetworkPolicy/default/db-from-web: "
	if l := a.line("/readyz", "edits: "); l != "edits: warning: "+text+refusedPort {
		t.Errorf("/readyz: %s", l)
	}
	if l := a.checkEdits(); l.State != preflight.Warn || !strings.HasPrefix(l.Found, text) {
		t.Errorf("check --live: %+v", l)
	}
	if l := a.line("/metrics", "antrail_objects_edit_refused{"); l != `antrail_objects_edit_refused{kind="NetworkPolicy"} 1` {
		t.Errorf("metrics: %s", l)
	}
	const note = "the edit of NetworkPolicy default/db-from-web is refused, its state before is in force: " + refusedPort
	for _, to := range []string{"default/db-a:3306", "default/db-a:22"} { // it decides, and it applies
		if n := a.notes("default/client-a", to); n != note {
			t.Errorf("why to %s: %q", to, n)
		}
	}
	if n := a.notes("default/client-a", "default/web-a:80"); n != "" {
		t.Errorf("why of another Pod: %q", n)
	}

	a.edit("policies.yaml", "port: 330600}", "port: 3306}")
	wantNone("mended")
	a.edit("policies.yaml", "port: 3306}", "port: 330600}")
	if err := os.Remove(filepath.Join(a.manifests, "policies.yaml")); err != nil {
		t.Fatal(err)
	}
	a.live.manifests.Read()
	wantNone("deleted")
}

// TestRefusedByOthersIsShown: a policy that is edited to a tier that does not exist stays
// in force and is shown with the refused edit. One that never was good is refused, and
// counted as refused.
func TestRefusedByOthersIsShown(t *testing.T) {
	a := newEditedAgent(t)
	const name, guard = "web-app-db-network-policy", `antrail_objects{kind="ClusterNetworkPolicy",state="installed"} `
	was := a.line("/metrics", guard)
	a.edit("policies.yaml", "priority: 5\n  tier: application", "priority: 5\n  tier: none")
	const refused = "policies.yaml:31: spec.tier: there is no tier none"
	if l := a.line("/policies", "ClusterNetworkPolicy", name); !strings.HasSuffix(l, "installed, edit refused: "+refused) {
		t.Errorf("get policies: %s", l)
	}
	if l := a.line("/readyz", "edits: "); !strings.HasSuffix(l, "ClusterNetworkPolicy/"+name+": "+refused) {
		t.Errorf("/readyz: %s", l)
	}
	if l := a.line("/metrics", "antrail_objects_edit_refused{"); l != `antrail_objects_edit_refused{kind="ClusterNetworkPolicy"} 1` {
		t.Errorf("metrics: %s", l)
	}
	if l := a.line("/metrics", guard); l != was || was == "" {
		t.Errorf("metrics: %q, before %q", l, was)
	}
	a.edit("policies.yaml", "priority: 5\n  tier: none", "priority: 5\n  tier: application")
	if l := a.line("/readyz", "edits: "); l != "edits: ok" {
		t.Errorf("mended: %s", l)
	}
	writeFile(t, filepath.Join(a.manifests, "new.yaml"), "apiVersion: crd.antrea.io/v1beta1\nkind: ClusterNetworkPolicy\nmetadata: {name: names}\n"+
		"spec: {priority: 1, appliedTo: [{podSelector: {}}], egress: [{action: Drop, to: [{fqdn: example.org}]}]}\n")
	a.live.manifests.Read()
	a.live.wrong.Store(new(a.live.manifests.Problems())) // as the watch reports them
	if l := a.line("/policies", "names"); !strings.HasSuffix(l, "refused: new.yaml:1: spec.egress[0]: peer 0: peers by fqdn are not supported") {
		t.Errorf("get policies: %s", l)
	}
	if l := a.line("/explain?what=ClusterNetworkPolicy/names", "refused", "peers by fqdn"); l == "" {
		t.Error("explain does not tell that it is refused")
	}
	if l := a.line("/metrics", `kind="ClusterNetworkPolicy",state="refused"} 1`); l == "" {
		t.Error("metrics do not count it as refused")
	}
}

// TestRefusedEditOfEachKind: all objects of files that cannot be read are shown, and so are
// a NodeConfig and a Node's Pods that would be another Node's.
func TestRefusedEditOfEachKind(t *testing.T) {
	a := newEditedAgent(t)
	for _, file := range []string{"policies.yaml", "services.yaml", "pods.yaml", "egress-trafficcontrol.yaml", "node-b.yaml"} {
		writeFile(t, filepath.Join(a.manifests, file), "spec: [\n")
	}
	a.live.manifests.Read()
	for path, name := range map[string]string{
		"/policies": "db-from-web", "/services": "web-a-only", "/pods": "db-a", "/egresses": "egress", "/trafficcontrols": "Mirror", "/nodes": "node-b",
	} {
		if l := a.line(path, name); !strings.Contains(l, ", edit refused: ") || !strings.Contains(l, ".yaml:") {
			t.Errorf("%s: %s", path, l)
		}
	}
	a.edit("node-a.yaml", "ofPort: 2,", "ofPort: 3,")
	if l := a.line("/nodes", "node-a"); !strings.Contains(l, "this Node, edit refused: node-a.yaml:") || !strings.Contains(l, "until this is corrected, the agent applies no change of any object") {
		t.Errorf("/nodes: %s", l)
	}
	a.edit("node-a.yaml", "ofPort: 3,", "ofPort: 2,")
	if l := a.line("/nodes", "node-a"); !strings.HasSuffix(l, "this Node") {
		t.Errorf("/nodes: %s", l)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
