package kubetest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// Real is a real API server: kube-apiserver with etcd, on loopback, without nodes and
// controllers. Its programs come from hack/k8s.
type Real struct {
	t      testing.TB
	bin    string
	dir    string
	ports  [3]int // of the API, and of etcd for clients and peers
	etcd   *exec.Cmd
	api    *exec.Cmd
	client *http.Client
	flags  []string // more flags of kube-apiserver
}

// BinVariable names the environment variable with the directory of the programs.
const BinVariable = "ANTRAIL_K8S_BIN"

// startTime is how long an API server may take to be ready, on a busy machine.
const startTime = 3 * time.Minute

// The tokens of an administrator and of the agent's service account.
const (
	adminToken = "admin-of-a-test"
	agentToken = "agent-of-a-test"
)

// NewReal starts an API server with more flags of kube-apiserver. The test's end removes
// everything of it.
func NewReal(t testing.TB, flags ...string) *Real {
	t.Helper()
	r := &Real{t: t, bin: os.Getenv(BinVariable), dir: t.TempDir(), flags: flags}
	if r.bin == "" {
		t.Fatalf("%s is not set: want the directory of kube-apiserver and etcd; run make test-k8s", BinVariable)
	}
	for i := range r.ports {
		r.ports[i] = freePort(t)
	}
	r.write("tokens.csv", fmt.Sprintf("%s,admin,1,\"system:masters\"\n%s,system:serviceaccount:kube-system:antrail,2,\"system:serviceaccounts,system:authenticated\"\n",
		adminToken, agentToken))
	r.write("sa.key", newKey(t))
	r.write("audit.yaml", auditPolicy)
	r.etcd = r.spawn("etcd", "--data-dir", filepath.Join(r.dir, "etcd"), "--unsafe-no-fsync", "--log-level", "error",
		"--listen-client-urls", r.url(1), "--advertise-client-urls", r.url(1),
		"--listen-peer-urls", r.url(2), "--initial-advertise-peer-urls", r.url(2), "--initial-cluster", "default="+r.url(2))
	t.Cleanup(func() { r.Stop(); stop(r.etcd) })
	r.Start()
	return r
}

func freePort(t testing.TB) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// newKey makes the key that signs service accounts' tokens.
func newKey(t testing.TB) string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func (r *Real) write(name, text string) string {
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

func (r *Real) url(i int) string { return fmt.Sprintf("http://127.0.0.1:%d", r.ports[i]) }

// spawn starts a program that dies with this one.
func (r *Real) spawn(name string, args ...string) *exec.Cmd {
	r.t.Helper()
	log, err := os.OpenFile(filepath.Join(r.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	c := exec.Command(filepath.Join(r.bin, name), args...)
	c.Dir, c.Stdout, c.Stderr = r.dir, log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	return c
}

func stop(c *exec.Cmd) {
	if c != nil && c.Process != nil {
		c.Process.Kill()
		c.Wait()
	}
}

// Start starts kube-apiserver and waits until it is ready.
func (r *Real) Start() {
	r.t.Helper()
	key := filepath.Join(r.dir, "sa.key")
	r.api = r.spawn("kube-apiserver", append(r.flags, "--etcd-servers", r.url(1), "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
		"--secure-port", fmt.Sprint(r.ports[0]), "--cert-dir", filepath.Join(r.dir, "certs"),
		"--service-account-issuer", "https://test", "--service-account-signing-key-file", key, "--service-account-key-file", key,
		"--audit-policy-file", filepath.Join(r.dir, "audit.yaml"), "--audit-log-path", r.auditLog(), "--audit-log-mode", "blocking",
		"--service-cluster-ip-range", "10.96.0.0/16", "--token-auth-file", filepath.Join(r.dir, "tokens.csv"),
		"--authorization-mode", "RBAC", "--endpoint-reconciler-type", "none", "--enable-priority-and-fairness=false",
		"--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition")...)
	end := time.Now().Add(startTime)
	for !r.ready() {
		if time.Now().After(end) {
			log, _ := os.ReadFile(filepath.Join(r.dir, "kube-apiserver.log"))
			r.t.Fatalf("kube-apiserver is not ready:\n%s", log[max(0, len(log)-3000):])
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// auditPolicy logs the agent's requests, without the stage in which they arrive.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, users: ["system:serviceaccount:kube-system:antrail"]}
  - {level: None}
`

func (r *Real) auditLog() string { return filepath.Join(r.dir, "audit.log") }

// Stop kills the API server. etcd keeps the objects.
func (r *Real) Stop() { stop(r.api) }

func (r *Real) caFile() string { return filepath.Join(r.dir, "certs", "apiserver.crt") }

func (r *Real) ready() bool {
	if r.client == nil {
		ca, err := os.ReadFile(r.caFile())
		if err != nil {
			return false
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return false // kube-apiserver has written a part of it
		}
		r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 16}}
	}
	status, _, err := r.sendRequest(http.MethodGet, "/readyz", "", nil)
	return err == nil && status == http.StatusOK
}

// sendRequest sends a request as administrator.
func (r *Real) sendRequest(method, path, contentType string, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("https://127.0.0.1:%d%s", r.ports[0], path), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", contentType)
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// must sends a request and returns the answer. The test fails if its status is 300 or more.
func (r *Real) must(method, path, contentType string, body []byte) []byte {
	r.t.Helper()
	status, answer, err := r.sendRequest(method, path, contentType, body)
	if err != nil || status >= 300 {
		r.t.Fatalf("%s %s: %d, %v\n%.600s", method, path, status, err, answer)
	}
	return answer
}

// pathOf is the URL path of an object.
func pathOf(o object) string {
	version, ref := text(o, "apiVersion"), refOf(o)
	path := "/apis/" + version
	if !strings.Contains(version, "/") {
		path = "/api/" + version
	}
	if ref.namespace != "" {
		path += "/namespaces/" + ref.namespace
	}
	return path + "/" + ref.plural + "/" + ref.name
}

// Apply creates or replaces the objects of a text of YAML documents, with their status.
func (r *Real) Apply(manifests string) {
	r.t.Helper()
	for doc := range strings.SplitSeq("\n"+manifests, "\n---") {
		var o object
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			r.t.Fatal(err)
		}
		if o != nil {
			r.put(o)
		}
	}
}

// put applies an object, then its status: the API drops the status of an object that it creates.
func (r *Real) put(o object) {
	r.t.Helper()
	const who, apply = "?fieldManager=test&force=true", "application/apply-patch+yaml"
	body, err := json.Marshal(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.must(http.MethodPatch, pathOf(o)+who, apply, body)
	if o["status"] != nil && text(o, "kind") != "CustomResourceDefinition" {
		r.must(http.MethodPatch, pathOf(o)+"/status"+who, apply, body)
	}
}

// Delete deletes an object at once.
func (r *Real) Delete(apiVersion, kind, namespace, name string) {
	r.t.Helper()
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": object{"namespace": namespace, "name": name}}
	r.must(http.MethodDelete, pathOf(o)+"?gracePeriodSeconds=0", "", nil)
}

// List returns the objects of a collection.
func (r *Real) List(path string) (items []map[string]any) {
	r.t.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(r.must(http.MethodGet, path, "", nil), &list); err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

// Kubeconfig is a file for the agent's service account, antrail in kube-system. It may do what
// the applied roles allow.
func (r *Real) Kubeconfig() string {
	return r.write("kubeconfig", fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "https://127.0.0.1:%d", certificate-authority: %q}}]
users: [{name: test, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, r.ports[0], r.caFile(), agentToken))
}

// Address is the server's address.
func (r *Real) Address() string { return fmt.Sprintf("127.0.0.1:%d", r.ports[0]) }

// Has says whether a path can be read.
func (r *Real) Has(path string) bool {
	status, _, err := r.sendRequest(http.MethodGet, path, "", nil)
	return err == nil && status == http.StatusOK
}

// Create creates an object, and writes its status if it has one.
func (r *Real) Create(o map[string]any) {
	r.t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		r.t.Fatal(err)
	}
	path := pathOf(o)
	r.must(http.MethodPost, path[:strings.LastIndexByte(path, '/')], "application/json", body)
	if o["status"] != nil {
		r.must(http.MethodPatch, path+"/status", "application/merge-patch+json", body)
	}
}

// Change reads an object, sets one of its labels or annotations, and writes it. It returns 200,
// or 409 if the object was written in between.
func (r *Real) Change(path, what, key, value string) (status int) {
	r.t.Helper()
	var o object
	if err := json.Unmarshal(r.must(http.MethodGet, path, "", nil), &o); err != nil {
		r.t.Fatal(err)
	}
	meta := o["metadata"].(object)
	if meta[what] == nil {
		meta[what] = object{}
	}
	meta[what].(object)[key] = value
	body, err := json.Marshal(o)
	if err != nil {
		r.t.Fatal(err)
	}
	status, answer, err := r.sendRequest(http.MethodPut, path, "application/json", body)
	if err != nil || status != http.StatusOK && status != http.StatusConflict {
		r.t.Fatalf("PUT %s: %d, %v\n%.300s", path, status, err, answer)
	}
	return status
}

// Get returns an object; nil if it does not exist.
func (r *Real) Get(apiVersion, kind, namespace, name string) (o map[string]any) {
	r.t.Helper()
	meta := object{"namespace": namespace, "name": name}
	status, answer, err := r.sendRequest(http.MethodGet, pathOf(object{"apiVersion": apiVersion, "kind": kind, "metadata": meta}), "", nil)
	if status == http.StatusNotFound {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(answer, &o)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

// Requests counts the requests of the agent's service account so far. A key is VERB GROUP
// RESOURCE in the words of RBAC: the core group is "", and a subresource is RESOURCE/PART. It
// reads whole lines of the log only, because the server may be writing the last one.
func (r *Real) Requests() map[string]int {
	r.t.Helper()
	log, err := os.ReadFile(r.auditLog())
	if err != nil {
		r.t.Fatal(err)
	}
	requests := map[string]int{}
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e struct {
			Verb      string
			ObjectRef *struct{ APIGroup, Resource, Subresource string }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			r.t.Fatal(err)
		}
		if e.ObjectRef != nil {
			resource := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
			requests[fmt.Sprintf("%s %q %s", e.Verb, e.ObjectRef.APIGroup, resource)]++
		}
	}
	return requests
}
