package answer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/internal/browsertest"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/web"
)

// The page in a real browser, with a Node of examples/web-app on memory ports
// behind it and packets that pass. -screenshots DIR keeps what a person would see.

// browsing is a browser with the page of a Node open.
type browsing struct {
	*browsertest.Browser
	t    *testing.T
	node *watchedNode
}

// hostileName is what nobody would call a policy's rule.
const hostileName = `<img src=x onerror=alert(1)>`

// hostileObjects are those of the example, and a policy with that name in it. The directory's
// name, which the page shows, has no place to break and is longer than a line.
func hostileObjects(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), strings.Repeat("objects", 20))
	if err := os.CopyFS(dir, os.DirFS("../../examples/web-app")); err != nil {
		t.Fatal(err)
	}
	policy := fmt.Sprintf(`apiVersion: crd.antrea.io/v1beta1
kind: ClusterNetworkPolicy
metadata:
  name: hostile
spec:
  priority: 5
  appliedTo:
  - podSelector: {matchLabels: {pod: client-a}}
  egress:
  - name: %q
    action: Allow
    to:
    - ipBlock: {cidr: 10.99.0.0/16}
`, hostileName)
	if err := os.WriteFile(filepath.Join(dir, "hostile.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// browse opens the page in a browser of its own.
func browse(t *testing.T) *browsing {
	t.Helper()
	n := loadWatched(t, hostileObjects(t), "node-a", pipeline.Options{})
	b := &browsing{t: t, node: n, Browser: browsertest.Open(t, servePage(t, n))}
	b.Poll(`document.querySelector("#pulse")?.dataset.state === "live"`)
	return b
}

// servePage serves a Node's page, and returns the URL that lets a browser in.
func servePage(t *testing.T, n *watchedNode) (invitation string) {
	p := n.Answers
	mux := p.Routes(Registry(p))
	mux.HandleFunc("POST /trace/live", func(w http.ResponseWriter, r *http.Request) { p.AnswerLive(w, r, n.name) })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	here := web.Node{Name: n.name, API: mux, Counters: p.CounterText}
	page, err := NewPage(web.Options{Nodes: []web.Node{here}, Plots: plots(t)}, ln.Addr().String(), func(url string) error { invitation = url; return nil })
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ctx, ln, page) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return invitation
}

// plots is a directory as a benchmark leaves it.
func plots(t *testing.T) string {
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS("../../docs/plots"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "bench.json"), []byte(`{"began": "2026-11-22T12:00:00Z"}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// traffic sends packets until the test ends: to a Service, and some that lie.
func (b *browsing) traffic() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			b.node.send(b.t, nodeClient, syn("10.96.0.24", uint16(1000+i%500)), packet.Tunnel{}, nodeWeb)
			if i%4 == 0 {
				forged := syn("10.10.0.24", 1000)
				copy(forged[26:], []byte{10, 10, 0, 99})
				b.node.send(b.t, nodeClient, forged, packet.Tunnel{}, 0)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	b.Cleanup(func() { stop(); <-ended })
}
