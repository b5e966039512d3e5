// Package kubetest is an API server for tests: enough of one to list, watch,
// lose watches, forget, go away and come back. It speaks JSON, knows no types,
// and takes an object for what it says it is, status included.
//
//	kubetest.go  the server: up, down, what it was asked
//	objects.go   objects and the history of their changes
//	serve.go     lists and watches over HTTP
//	real.go      kube-apiserver and etcd in its place, for make test-k8s
package kubetest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// API is a server. Its methods may be called from any goroutine.
type API struct {
	t    testing.TB
	addr string

	mu       sync.Mutex
	changed  chan struct{} // closed with each change of what is below
	objects  map[ref]object
	history  []change
	version  int
	oldest   int // changes up to this version are forgotten
	kinds    map[string]bool
	others   []string // resources of other groups, as group/version/plural
	refuse   int      // the status of every answer; 0: answers are given
	plain    bool
	requests map[string]int
	before   map[string]func()
	server   *http.Server
	cut      context.CancelFunc // ends all watches
	watches  context.Context
}

// New is a server with all of Antrea's kinds, which ends with the test.
func New(t testing.TB) *API {
	t.Helper()
	a := &API{
		t: t, addr: "127.0.0.1:0", changed: make(chan struct{}), objects: map[ref]object{}, version: 100,
		kinds: map[string]bool{}, requests: map[string]int{}, before: map[string]func(){},
	}
	for _, k := range antreaKinds {
		a.kinds[k] = true
	}
	a.Up()
	t.Cleanup(a.Down)
	return a
}

// Up begins to answer, always at the same address.
func (a *API) Up() {
	a.t.Helper()
	ln, err := net.Listen("tcp", a.addr)
	for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); ln, err = net.Listen("tcp", a.addr) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addr = ln.Addr().String()
	a.watches, a.cut = context.WithCancel(context.Background())
	a.server = &http.Server{Handler: http.HandlerFunc(a.serve)}
	go runServer(a.server, ln)
}

func runServer(s *http.Server, ln net.Listener) { s.Serve(ln) }

// Down closes all connections and answers nobody. Objects stay.
func (a *API) Down() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		a.cut()
		a.server.Close()
		a.server = nil
	}
}

// Cut ends all watches as a server does that wants them to be asked anew.
func (a *API) Cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut()
	a.watches, a.cut = context.WithCancel(context.Background())
}

// Forget gives up the history, so that a watch that was lost cannot go on.
func (a *API) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.history, a.oldest = nil, a.version
}

// Refuse answers everything with an HTTP status; 0 ends that.
func (a *API) Refuse(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = status
}

// Plain makes it a server that does not stream lists.
func (a *API) Plain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.plain = true
}

// Serve says whether it has one of Antrea's kinds, by the name in URLs.
func (a *API) Serve(plural string, yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kinds[plural] = yes
}

// ServeAlso has it serve a resource of a group that is not Antrea's, as
// group/version/plural.
func (a *API) ServeAlso(resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.others = append(a.others, resource)
}

// Before calls f once, when the next request of a sort that Asked counts has come and is
// not answered yet.
func (a *API) Before(what string, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before[what] = f
}

// Requests counts requests: "list pods", "watch pods", "create events", "patch nodes/status";
// those of them that were refused since the object is another: "conflict patch nodes/status".
func (a *API) Requests(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[what]
}

// Kubeconfig is a file that leads to the server.
func (a *API) Kubeconfig() string {
	a.t.Helper()
	path := filepath.Join(a.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "http://%s"}}]
users: [{name: test, user: {}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, a.addr)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}
