//go:build linux && k8s && !portable

package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/kubetest"
)

// The plugin against kube-apiserver and etcd: make test-k8s. The API server hands pods/exec on
// to the kubelet of the pod's Node. Here each Node has one of the test's, which runs the
// command in this process.

// pluginRights are what a person needs who runs the plugin. The API server asks for create
// of pods/exec, and for get because a WebSocket begins with GET.
const pluginRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: antrail-plugin}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get, list]}
- {apiGroups: [""], resources: [pods/exec], verbs: [get, create]}
`

// pluginBinding gives the rights to the person of the kubeconfig.
const pluginBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: antrail-plugin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: antrail-plugin}
subjects: [{kind: ServiceAccount, name: antrail, namespace: kube-system}]
`

// rightsTime is how long the API server may take to learn of a binding.
const rightsTime = 30 * time.Second

// kubeletOf serves as kubelet of a Node, and tells the API server where. The Node declares
// that its kubelet takes WebSockets, as kubelets do from Kubernetes 1.36 on.
func kubeletOf(t *testing.T, api *kubetest.Real, node string) *execServer {
	t.Helper()
	s := &execServer{}
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	api.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %s}
status:
  addresses: [{type: InternalIP, address: %s}]
  daemonEndpoints: {kubeletEndpoint: {Port: %s}}
  declaredFeatures: [ExtendWebSocketsToKubelet]
`, node, at.Hostname(), at.Port()))
	return s
}

// TestRealPlugin: with a real API server, the command reaches the kubelet of the right Node,
// its exit code comes back, and a person without rights learns which one is missing. kubectl
// finds the plugin by its name.
func TestRealPlugin(t *testing.T) {
	api := kubetest.NewReal(t)
	for _, namespace := range []string{"kube-system", "shop"} {
		api.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n")
	}
	api.Apply(clusterPods)
	one, two := kubeletOf(t, api, "worker-1"), kubeletOf(t, api, "worker-2")
	t.Setenv("KUBECONFIG", api.Kubeconfig())
	t.Setenv(socketEnv, t.TempDir()+"/none.sock")
	ask := func(args string) (code int, text string) {
		one.ran, two.ran = nil, nil
		var out, errs bytes.Buffer
		code = runPlugin(t.Context(), strings.Fields(args), &out, &errs)
		return code, out.String() + errs.String()
	}
	if code, text := ask("version --node worker-1"); code != 1 || !strings.Contains(text, "cannot list resource \"pods\"") {
		t.Errorf("without rights: exit code %d\n%s", code, text)
	}
	api.Apply(pluginRights)
	api.Apply(pluginBinding)
	// The API server watches roles and bindings. So it knows them a moment after it has stored them.
	for deadline := time.Now().Add(rightsTime); ; time.Sleep(10 * time.Millisecond) {
		_, text := ask("version --node worker-1")
		if !strings.Contains(text, "forbidden") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no rights %v after the binding: %s", rightsTime, text)
		}
	}
	for _, c := range []struct {
		args     string
		code     int
		want     string
		one, two string // what runs on the two Nodes
	}{
		{"version --node worker-1", 0, "antrail ", "kube-system/antrail-a1 agent: antrail version", ""},
		{"version --node worker-2", 0, "antrail ", "", "kube-system/antrail-b2 agent: antrail version"},
		{"drops --pod shop/checkout-5d9c", 1, "no agent answers at", "", "kube-system/antrail-b2 agent: antrail drops --pod shop/checkout-5d9c"},
		{"dump-flows --bogus --node worker-1", 2, "unknown flag: --bogus", "kube-system/antrail-a1 agent: antrail dump-flows --bogus", ""},
		{"drops --pod shop/nobody", 1, `pods "nobody" not found`, "", ""},
		{"version", 1, "--node is missing: there are agents on worker-1, worker-2\n", "", ""},
		{"version --node worker-3", 1, `no agent runs on Node "worker-3"`, "", ""},
	} {
		code, text := ask(c.args)
		if ran := strings.Join(one.ran, "\n"); code != c.code || !strings.Contains(text, c.want) || ran != c.one {
			t.Errorf("kubectl antrail %s: exit code %d, want %d; worker-1 ran %q, want %q\n%s\nwant %q", c.args, code, c.code, ran, c.one, text, c.want)
		}
		if ran := strings.Join(two.ran, "\n"); ran != c.two {
			t.Errorf("kubectl antrail %s: worker-2 ran %q, want %q", c.args, ran, c.two)
		}
	}
	two.ran = nil
	text := kubectlRuns(t, "antrail", "--node", "worker-2", "version")
	if !strings.HasPrefix(text, "antrail ") || len(two.ran) != 1 {
		t.Errorf("kubectl antrail: worker-2 ran %q\n%s", two.ran, text)
	}
}

// kubectlRuns runs the kubectl of the API server's version, with this program as its plugin.
func kubectlRuns(t *testing.T, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, pluginName))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(os.Getenv(kubetest.BinVariable), "kubectl"), args...)
	cmd.Env = append(os.Environ(), asBinary+"=1", "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("kubectl %q: %v", args, err)
	}
	return string(text)
}
