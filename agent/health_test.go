package agent

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/packetin"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// loadedAgent is an agent with live manifests that is not started.
func loadedAgent(t *testing.T, more string) (*Agent, string) {
	t.Helper()
	c, manifests := liveNode(t)
	piece, err := config.Parse([]byte(goodConfig + more))
	if err != nil {
		t.Fatal(err)
	}
	c.Metrics = piece.Metrics
	a := &Agent{config: c, log: slog.New(slog.DiscardHandler), told: make(chan struct{})}
	if a.Pipeline, a.live, err = loadNew(c, a.log); err != nil {
		t.Fatal(err)
	}
	a.answers = answer.New(a.Pipeline)
	a.Packets.Audit = packetin.NewAudit(&packetin.AuditFile{}, a.Objects, 1, a.log)
	t.Cleanup(func() { a.Local.Close() })
	return a, manifests
}

// getPath asks a handler and tells status and body.
func getPath(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// TestReadiness goes from an agent that starts to one that is ready, and to one
// that forwards by what another left.
func TestReadiness(t *testing.T) {
	a, _ := loadedAgent(t, "")
	h := a.scrapeRoutes()
	expect := func(path string, status int, want string) {
		t.Helper()
		if code, text := getPath(t, h, path); code != status || text != want {
			t.Errorf("%s: %d\n%s\nwant %d\n%s", path, code, text, status, want)
		}
	}
	expect("/readyz", 503, "pipeline: ok\nports: the ports are being opened\nsource: ok\nlinks: ok\nedits: ok\n")
	a.ready.Store(true)
	expect("/readyz", 200, "pipeline: ok\nports: ok\nsource: ok\nlinks: ok\nedits: ok\n")
	a.live.synced = make(chan struct{})
	expect("/readyz", 503, "pipeline: ok\nports: ok\nsource: not read yet; the previous agent's entries are in force\nlinks: ok\nedits: ok\n")
	expect("/readyz?exclude=source", 200, "pipeline: ok\nports: ok\nlinks: ok\nedits: ok\n")

	empty, err := pipeline.NewPipeline(pipeline.OptionsOf(a.config))
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Local.Close()
	a.Pipeline = empty
	expect("/readyz?exclude=source", 503, "pipeline: no entries are installed\nports: ok\nlinks: ok\nedits: ok\n")
}

// TestLiveness has two workers, of which one stops.
func TestLiveness(t *testing.T) {
	a, _ := loadedAgent(t, "")
	h := a.scrapeRoutes()
	moves := telemetry.WorkerStats{No: 0}
	stands := telemetry.WorkerStats{No: 1, Batches: 7}
	for i := range stillTicks + 1 {
		if code, text := getPath(t, h, "/healthz"); code != 200 || text != "workers: ok\n" {
			t.Fatalf("after %d ticks: %d %s", i, code, text)
		}
		moves.Sleeps++
		a.beats.noteTick([]telemetry.WorkerStats{moves, stands})
	}
	code, text := getPath(t, h, "/healthz")
	if code != 503 || !strings.Contains(text, "worker 1 has neither moved a packet nor slept for 10 seconds") {
		t.Errorf("%d %s", code, text)
	}
	stands.Batches++
	a.beats.noteTick([]telemetry.WorkerStats{moves, stands})
	if code, text := getPath(t, h, "/healthz"); code != 200 {
		t.Errorf("a worker that turns again: %d %s", code, text)
	}
}

// TestWorkersThatRunAreAlive: a switch without traffic shows beats.
func TestWorkersThatRunAreAlive(t *testing.T) {
	a, _ := loadedAgent(t, "")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Local.Run(ctx) }()
	began := a.Switch.Workers()
	for _, w := range began {
		for deadline := time.Now().Add(time.Minute); a.Switch.Workers()[w.No].Sleeps == w.Sleeps; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("worker %d shows nothing", w.No)
			}
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestScrapes serves over TCP, on an address that somebody else has at first.
func TestScrapes(t *testing.T) {
	t.Parallel() // it waits for tcpRetry
	a, _ := loadedAgent(t, "metrics: {antreaNames: true}\n")
	taken := httptest.NewServer(http.NotFoundHandler())
	a.config.Metrics.Address = taken.Listener.Addr().String()
	log := make(logLines, 100)
	a.log = slog.New(slog.NewTextHandler(log, nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.runScrapes(ctx) }()
	log.want(t, "not served over TCP, trying again: metrics")
	taken.Close()
	log.want(t, "served over TCP: metrics")
	url := "http://" + a.config.Metrics.Address
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`antrail_table_entries{table="SpoofGuard"}`, `antrail_objects{kind="Pod",state="installed"} 3`,
		`antrail_group_packets_total{group="`, `antrail_meter_dropped_packets_total{meter="`, "process_resident_memory_bytes ", "go_goroutines ",
		"antrea_agent_local_pod_count 3\n", `antrea_agent_ovs_flow_count{table_id="0"}`, "antrea_agent_ingress_networkpolicy_rule_count ",
		"antrea_proxy_total_services_installed ", "antrea_agent_conntrack_total_connection_count 0\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
	for path, status := range map[string]int{"/debug/pprof/": 404, "/conntrack": 404, "/flows": 404, "/healthz": 200} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, resp.StatusCode, status)
		}
	}
	stop()
	<-ended
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("somebody answers after the end")
	}
}

// TestProfilesOnRequest: profiles and Antrea's names are there when they are asked
// for, and not before.
func TestProfilesOnRequest(t *testing.T) {
	a, _ := loadedAgent(t, "metrics: {pprof: true}\n")
	if code, _ := getPath(t, a.scrapeRoutes(), "/debug/pprof/goroutine?debug=1"); code != 200 {
		t.Errorf("/debug/pprof/goroutine: %d", code)
	}
	if _, text := getPath(t, a.scrapeRoutes(), "/metrics"); strings.Contains(text, "antrea_agent") {
		t.Error("Antrea's names are there, and nobody asked for them")
	}
}

// TestMetricsLint has Prometheus' own check read every metric.
func TestMetricsLint(t *testing.T) {
	a, _ := loadedAgent(t, "")
	problems, err := testutil.GatherAndLint(answer.Registry(answer.New(a.Pipeline)))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		// Those of one name for all that conntrack counts keep their unit.
		if !strings.Contains(p.Metric, "nanoseconds") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// TestDelays changes a manifest under a running agent: its delay is counted once
// the entries are in the switch, under the kind of the object.
func TestDelays(t *testing.T) {
	a, manifests := loadedAgent(t, "")
	l := a.live
	if n := testutil.CollectAndCount(a.Delays); n != 0 {
		t.Fatalf("%d kinds have delays before any change", n)
	}
	l.setPorts = func([]config.Port) {}
	l.setNode = func(*ledger.NodeSide) error { return nil }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.runManifests(ctx) }()
	more := filepath.Join(manifests, "more.yaml")
	for deadline := time.Now().Add(time.Minute); testutil.CollectAndCount(a.Delays) == 0 && time.Now().Before(deadline); { // the watch may not have begun
		if err := os.WriteFile(more, []byte(`{apiVersion: v1, kind: Service, metadata: {name: more, namespace: default}, spec: {clusterIP: 10.105.31.77, ports: [{port: 80}]}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		if err := os.Remove(more); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(a.Delays); n != 1 {
		t.Errorf("%d kinds have delays, want that of Services", n)
	}
	_, text := getPath(t, a.scrapeRoutes(), "/metrics")
	if want := `antrail_realisation_seconds_count{kind="Service"}`; !strings.Contains(text, want) {
		t.Errorf("no %s", want)
	}
}
