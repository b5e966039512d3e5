// Package kubetest is an API server for tests. It lists and watches, loses watches and history,
// goes away and comes back. It speaks JSON, knows no types, and stores an object as it comes,
// with its status.
//
//	kubetest.go  the server: up, down, and counts of requests
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
	changed  chan struct{} // closed with each change of the fields below
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

// Up starts to answer, always at the same address.
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

// Down closes all connections and answers no request. Objects stay.
func (a *API) Down() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server != nil {
		a.cut()
		a.server.Close()
		a.server = nil
	}
}

// Cut ends all watches. Clients have to watch again.
func (a *API) Cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut()
	a.watches, a.cut = context.WithCancel(context.Background())
}

// Forget drops the history, so that a lost watch cannot continue.
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

// Plain makes the server refuse streamed lists.
func (a *API) Plain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.plain = true
}

// Serve sets whether the server has one of Antrea's kinds, by the name in URLs.
func (a *API) Serve(plural string, yes bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kinds[plural] = yes
}

// ServeAlso adds a resource of a group that is not Antrea's, as group/version/plural.
func (a *API) ServeAlso(resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.others = append(a.others, resource)
}

// Before calls f once, when the next request of a kind has come and has no answer yet. The kinds
// are those of Requests.
func (a *API) Before(what string, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before[what] = f
}

// Requests counts requests of a kind: "list pods", "watch pods", "create events", "patch
// nodes/status". "conflict patch nodes/status" counts those that were refused because the object
// had changed.
func (a *API) Requests(what string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[what]
}

// Kubeconfig is a file with the server's address.
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
