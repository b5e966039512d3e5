package agent

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/internal/halfopen"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// What is served over TCP, for Prometheus and a kubelet's probes: /metrics,
// /healthz and /readyz, and nothing that shows or changes connections. On the
// loopback unless the configuration says otherwise.

// DefaultMetrics is where metrics are served. The ports below it are those of
// Antrea's own programs.
const DefaultMetrics = "127.0.0.1:10352"

// Metrics says what is served over TCP. /metrics, /healthz and /readyz are also
// served on the agent's socket.
type Metrics struct {
	// Listen opens Address; true when not given.
	Listen *bool `json:"listen,omitempty"`
	// Address is an IP address and a port; DefaultMetrics when not given.
	Address string `json:"address,omitempty"`
	// AntreaNames adds the metrics of Antrea's agent, under its names, as far as
	// they have a meaning here.
	AntreaNames bool `json:"antreaNames,omitempty"`
	// PProf serves Go's profiles at /debug/pprof/. Only on a loopback address.
	PProf bool `json:"pprof,omitempty"`
}

func (m *Metrics) setDefaults() {
	orDefault(&m.Address, DefaultMetrics)
	orDefault(&m.Listen, new(true))
}

func (m *Metrics) check(f *faults) {
	a, err := netip.ParseAddrPort(m.Address)
	f.check(err == nil && a.Port() != 0, "metrics.address: %q is no IP address with a port", m.Address)
	f.check(!m.PProf || a.Addr().IsLoopback(), "metrics.pprof: profiles show the process's memory; %s is no loopback address", m.Address)
}

// scrapeRoutes is what is served over TCP.
func (a *Agent) scrapeRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", a.honest(promhttp.HandlerFor(a.metricsRegistry(), promhttp.HandlerOpts{}).ServeHTTP))
	a.addHealth(mux)
	if a.config.Metrics.PProf {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}

// metricsRegistry has the counters of a running agent: the switch's, those of the
// process, and Antrea's if asked for.
func (a *Agent) metricsRegistry() *prometheus.Registry {
	r := registry(a.pipeline)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if a.config.Metrics.AntreaNames {
		r.MustRegister(antreaCollector{a.pipeline})
	}
	return r
}

// registry has the counters of a pipeline.
func registry(p *pipeline) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{p})
	if p.api != nil {
		r.MustRegister(watchCollector{p.api})
	}
	if p.delays != nil {
		r.MustRegister(p.delays)
	}
	return r
}

// runScrapes serves metrics and health over TCP until ctx ends. The switch does
// not depend on it: an address that cannot be had is told and tried again.
func (a *Agent) runScrapes(ctx context.Context) {
	a.servesTCP(ctx, "metrics", a.config.Metrics.Address, a.serveScrapes)
}

// serveScrapes answers on one listener until ctx ends.
func (a *Agent) serveScrapes(ctx context.Context, ln net.Listener) error {
	// No write timeout: a profile may take as long as it was asked to.
	s := halfopen.Server{Limits: scrapeLimits, Handler: a.scrapeRoutes(), Name: "metrics", Log: a.log}
	return s.Serve(ctx, ln)
}

// scrapeLimits bound what peers can hold of the metrics. Requests have no body.
var scrapeLimits = halfopen.Limits{
	PerPeer: 32, Total: 128, Header: 10 * time.Second, Body: 10 * time.Second, Idle: 2 * time.Minute,
	HeaderBytes: 16 << 10, BodyBytes: 64 << 10,
}

// Objects by state: what of the cluster is not in force.
var objectStates = describe("objects", "Objects that this Node has to do with, by kind and state (installed, pending, refused).", "kind", "state")

var objectEdits = describe("objects_edit_refused", "Objects that stay as they were because their newest state, or the file that they stand in, is refused.", "kind")

// objectCounts collects how far objects have come.
func (c collector) objectCounts(ch chan<- prometheus.Metric) {
	if c.p.objects == nil {
		return
	}
	type state struct {
		kind  control.Kind
		state control.State
	}
	n := map[state]int{}
	for _, s := range append(c.p.objects.Statuses(), c.p.refusedObjects(anyKind)...) {
		n[state{s.Object.Kind, s.State}]++
	}
	for k, count := range n {
		gauge(ch, objectStates, count, string(k.kind), string(k.state))
	}
	edits := map[control.Kind]int{}
	for k := range c.p.objects.RefusedEdits() {
		edits[k.Kind]++
	}
	for kind, count := range edits {
		gauge(ch, objectEdits, count, string(kind))
	}
}
