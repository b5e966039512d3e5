//go:build linux && !portable

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/internal/kubetest"
	"golang.org/x/net/websocket"
)

// clusterPods are two agents, one that has ended, and a Pod.
const clusterPods = `
apiVersion: v1
kind: Pod
metadata: {name: antrail-a1, namespace: kube-system, labels: {app.kubernetes.io/name: antrail}}
spec: {nodeName: worker-1, containers: [{name: switch, image: x}, {name: agent, image: x}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: antrail-b2, namespace: kube-system, labels: {app.kubernetes.io/name: antrail}}
spec: {nodeName: worker-2, containers: [{name: switch, image: x}, {name: agent, image: x}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: antrail-old, namespace: kube-system, labels: {app.kubernetes.io/name: antrail}}
spec: {nodeName: worker-3, containers: [{name: agent, image: x}]}
status: {phase: Failed}
---
apiVersion: v1
kind: Namespace
metadata: {name: elsewhere}
---
apiVersion: v1
kind: Pod
metadata: {name: checkout-5d9c, namespace: shop, labels: {app: checkout}}
spec: {nodeName: worker-2, containers: [{name: c, image: x}]}
status: {phase: Running}
`

// execServer serves pods/exec, as an API server or as a kubelet. Its containers have this
// program.
type execServer struct {
	rest http.Handler // for other paths; nil at a kubelet
	ran  []string     // pod, container, command
}

// execPath is that of the API server, or of a kubelet with the container in it.
var execPath = regexp.MustCompile(`^/(?:api/v1/namespaces/([^/]+)/pods/([^/]+)/exec|exec/([^/]+)/([^/]+)/([^/]+))$`)

func (s *execServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := execPath.FindStringSubmatch(r.URL.Path)
	switch {
	case m == nil && s.rest == nil:
		http.NotFound(w, r)
		return
	case m == nil:
		s.rest.ServeHTTP(w, r)
		return
	}
	q := r.URL.Query()
	s.ran = append(s.ran, m[1]+m[3]+"/"+m[2]+m[4]+" "+q.Get("container")+m[5]+": "+strings.Join(q["command"], " "))
	websocket.Server{
		Handshake: func(c *websocket.Config, _ *http.Request) error {
			if !slices.Contains(c.Protocol, "v5.channel.k8s.io") {
				return fmt.Errorf("protocols %q", c.Protocol)
			}
			c.Protocol = []string{"v5.channel.k8s.io"}
			return nil
		},
		Handler: func(c *websocket.Conn) { runContainer(c, q["command"]) },
	}.ServeHTTP(w, r)
}

// runContainer runs a command as a kubelet does: output on channels 1 and 2, the end on channel 3.
func runContainer(c *websocket.Conn, command []string) {
	defer c.Close()
	c.PayloadType = websocket.BinaryFrame
	var stdout, stderr bytes.Buffer
	code := run(command[1:], &stdout, &stderr)
	c.Write(append([]byte{1}, stdout.Bytes()...))
	c.Write(append([]byte{2}, stderr.Bytes()...))
	status := map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success"}
	if code != 0 {
		status["status"], status["reason"], status["message"] = "Failure", "NonZeroExitCode", "command terminated with non-zero exit code"
		status["details"] = map[string]any{"causes": []any{map[string]any{"reason": "ExitCode", "message": fmt.Sprint(code)}}}
	}
	text, _ := json.Marshal(status)
	c.Write(append([]byte{3}, text...))
}

// pluginCluster is a server with clusterPods, and a kubeconfig for it.
func pluginCluster(t *testing.T) (*execServer, string) {
	t.Helper()
	a := kubetest.New(t)
	a.Apply(clusterPods)
	text, err := os.ReadFile(a.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	host := regexp.MustCompile(`https?://127\.0\.0\.1:\d+`).FindString(string(text))
	target, err := url.Parse(host)
	if host == "" || err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s := &execServer{rest: httputil.NewSingleHostReverseProxy(target)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, bytes.ReplaceAll(text, []byte(host), []byte(server.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	return s, file
}

// TestPlugin: the command runs at the agent of the right Node, and its output and code come back.
func TestPlugin(t *testing.T) {
	s, kubeconfig := pluginCluster(t)
	for _, c := range []struct {
		args string
		code int
		want string // in the output
		ran  string // "" for nothing
	}{
		{"--node worker-1 dump-groups " + "-O OpenFlow10 --node-less", 2, "unknown flag: --node-less", "kube-system/antrail-a1 agent: antrail dump-groups -O OpenFlow10 --node-less"},
		{"version --node=worker-2", 0, "antrail ", "kube-system/antrail-b2 agent: antrail version"},
		{"drops --pod shop/checkout-5d9c", 1, "no agent answers at", "kube-system/antrail-b2 agent: antrail drops --pod shop/checkout-5d9c"},
		{"drops --pod shop/nobody", 1, "pod shop/nobody: ", ""},
		{"drops --pod nobody", 1, `"nobody" is not NAMESPACE/NAME of a Pod`, ""},
		{"version", 1, "--node is missing: there are agents on worker-1, worker-2\n", ""},
		{"version --node worker-3", 1, `no agent runs on Node "worker-3"; there are agents on worker-1, worker-2`, ""},
		{"version --node worker-1 --agent-namespace elsewhere", 1, "no pod with the label app.kubernetes.io/name=antrail runs", ""},
		{"--node worker-1", 2, "the command is missing\nSee: kubectl antrail --help", ""},
		{"get pods --node", 2, "--node has no value", ""},
		{"get pods --flows x", 2, "--flows is for this machine", ""},
		{"capture -w x.pcapng --node worker-1", 2, "x.pcapng would be written in the agent's container: use -w -", ""},
		{"--help", 0, "kubectl antrail --node worker-1 get pods", ""},
	} {
		t.Setenv("KUBECONFIG", kubeconfig)
		t.Setenv(socketEnv, t.TempDir()+"/none.sock")
		s.ran = nil
		var out, errs bytes.Buffer // two streams: the plugin copies both at once
		code := runPlugin(t.Context(), strings.Fields(c.args), &out, &errs)
		out.Write(errs.Bytes())
		if code != c.code || !strings.Contains(out.String(), c.want) || strings.Join(s.ran, "\n") != c.ran {
			t.Errorf("kubectl antrail %s: exit code %d, want %d; ran %q, want %q\n%s\nwant %q", c.args, code, c.code, s.ran, c.ran, out.String(), c.want)
		}
	}
	if !isPlugin("/usr/local/bin/kubectl-antrail") || isPlugin("/usr/bin/antrail") {
		t.Error("the program does not know its name")
	}
}
