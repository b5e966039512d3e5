//go:build k8s

package kube

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/internal/nstest"
)

// wholeAgent is antrail agent as a process, on a Node of its own that reaches the API
// server by a gate.
type wholeAgent struct {
	t       *testing.T
	ns      *nstest.Namespace
	process *exec.Cmd
	socket  string
	began   time.Time
	tags    int
}

// wholeTimeout is how long the agent may take for what has to come.
const wholeTimeout = 3 * time.Minute

const wholeConfig = `nodeName: node-99
socket: %s
kubernetes: {kubeconfig: %s, proxyAll: true}
metrics: {pprof: true}
`

// newWhole starts an agent of the last Node.
func newWhole(t *testing.T, api *realAPI) *wholeAgent {
	t.Helper()
	ns, far := nstest.New(t), nstest.New(t)
	nstest.AddVeth(t, ns, "eth0", far, "far")
	ns.AddAddress(t, "eth0", "192.168.77.101/24")
	dir := t.TempDir()
	program, err := antrailtest.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := &wholeAgent{t: t, ns: ns, socket: filepath.Join(dir, "agent.sock")}
	own := *api
	ns.Do(t, func() { own.gate = newGate(t, api.Address()) }) // its socket stays there
	file := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, wholeConfig, a.socket, own.Kubeconfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "agent.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	a.process = ns.Command(program, "agent", "--config", file)
	a.process.Stderr = log
	a.began = time.Now()
	if err := a.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		a.process.Process.Kill()
		a.process.Wait()
		nstest.Until(t, "the end of the killed agent's switch", func() bool {
			return door.Dial(config.SwitchSocket(a.socket)).End(context.Background()) == nil
		})
		if text, err := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%v, the agent's log:\n%s", err, text)
		}
	})
	return a
}

// get asks its server of metrics.
func (a *wholeAgent) get(path string) (string, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (c net.Conn, err error) {
		a.ns.Do(a.t, func() { c, err = net.Dial("tcp", "127.0.0.1:10352") })
		return c, err
	}}}
	r, err := client.Get("http://agent" + path)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, text)
	}
	return string(text), err
}

// until waits for something, and tells how long that took.
func (a *wholeAgent) until(what string, try func() error) time.Duration {
	a.t.Helper()
	began := time.Now()
	for {
		err := try()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > wholeTimeout {
			a.t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ready waits for the first state, and tells how long that took from the start.
func (a *wholeAgent) ready() time.Duration {
	a.t.Helper()
	a.until("the agent is ready", func() error { _, err := a.get("/readyz"); return err })
	return time.Since(a.began)
}

// follows makes a Service, and waits until the agent has as many as there are: what was
// told before has come, too, or is about to. It tells how long that took.
func (a *wholeAgent) follows(api *realAPI) time.Duration {
	a.t.Helper()
	a.tags++
	api.Create(manyService(manyServices + a.tags))
	return a.until("the Service", func() error {
		text, err := a.get("/metrics")
		if err != nil {
			return err
		}
		n := 0
		for _, m := range serviceObjects.FindAllStringSubmatch(text, -1) {
			of, _ := strconv.Atoi(m[1])
			n += of
		}
		if want := manyServices + 1 + a.tags; n != want {
			err = fmt.Errorf("%d Services, want %d", n, want)
		}
		return err
	})
}

var serviceObjects = regexp.MustCompile(`(?m)^antrail_objects\{kind="Service",state="[a-z]+"\} (\d+)$`)

// holding is what a process holds, in bytes: heap in use after a collection, and of the
// memory that the kernel gave it, all of it and what no file backs.
type holding struct{ heap, resident, anonymous int64 }

func (h holding) String() string {
	return fmt.Sprintf("heap %s, resident %s (%s without files)", mega(h.heap), mega(h.resident), mega(h.anonymous))
}

// holds measures.
func (a *wholeAgent) holds() (h holding) {
	a.t.Helper()
	for range 2 {
		if _, err := a.get("/debug/pprof/heap?gc=1"); err != nil {
			a.t.Fatal(err)
		}
	}
	text, err := a.get("/metrics")
	if err != nil {
		a.t.Fatal(err)
	}
	heap, err := strconv.ParseFloat(lineOf(text, "go_memstats_heap_alloc_bytes "), 64)
	if err != nil {
		a.t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.process.Process.Pid))
	if err != nil {
		a.t.Fatal(err)
	}
	kilobytes := func(name string) int64 {
		n, err := strconv.ParseInt(strings.TrimSuffix(lineOf(string(status), name), " kB"), 10, 64)
		if err != nil {
			a.t.Fatal(err)
		}
		return n << 10
	}
	return holding{int64(heap), kilobytes("VmRSS:"), kilobytes("RssAnon:")}
}

// lineOf is what follows the beginning of a line, trimmed; "" when there is none.
func lineOf(text, begin string) string {
	_, after, _ := strings.Cut("\n"+text, "\n"+begin)
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}
