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

// wholeAgent is an antrail agent in its own process, on its own Node. It reaches the API server
// through a gate.
type wholeAgent struct {
	t       *testing.T
	ns      *nstest.Namespace
	process *exec.Cmd
	socket  string
	began   time.Time
	tags    int
}

// wholeTimeout is how long a test waits for the agent.
const wholeTimeout = 3 * time.Minute

const wholeConfig = `nodeName: node-99
socket: %s
kubernetes: {kubeconfig: %s, proxyAll: true}
metrics: {pprof: true}
`

// newWhole starts an agent for the last Node.
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

// get sends a request to the agent's server of metrics.
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

// until waits for a condition, and returns how long that took.
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

// ready waits for the first state, and returns the time since the start.
func (a *wholeAgent) ready() time.Duration {
	a.t.Helper()
	a.until("the agent is ready", func() error { _, err := a.get("/readyz"); return err })
	return time.Since(a.began)
}

// follows creates a Service, and waits until the agent has all Services. Earlier changes have then
// arrived too, or are about to. It returns how long that took.
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

// holding is the memory of a process in bytes: the heap in use after a collection, all resident
// memory, and its anonymous part.
type holding struct{ heap, resident, anonymous int64 }

func (h holding) String() string {
	return fmt.Sprintf("heap %s, resident %s (%s without files)", mega(h.heap), mega(h.resident), mega(h.anonymous))
}

// holds measures the memory of the agent.
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

// lineOf returns the rest of the line with a prefix, trimmed; "" if there is none.
func lineOf(text, begin string) string {
	_, after, _ := strings.Cut("\n"+text, "\n"+begin)
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}
