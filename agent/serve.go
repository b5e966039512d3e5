package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"time"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/internal/halfopen"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The API is served over the unix socket. TCP has less: /metrics, and /healthz and /readyz for
// a kubelet's probes. These show and change no connection. If the configuration gives it an
// address, the page is served over TCP too. Both are on the loopback by default.

// routes is the API of a running agent.
func (a *Agent) routes(ctx context.Context) http.Handler {
	mux := a.answers.Routes(a.metricsRegistry())
	a.addHealth(mux)
	mux.HandleFunc("GET /check", a.answers.Honest(a.answerCheck))
	mux.HandleFunc("POST /trace/live", a.answerLive)
	mux.HandleFunc("POST /cni/{verb}", a.answerCNI)
	mux.HandleFunc("POST /leave", func(w http.ResponseWriter, r *http.Request) { a.answerLeave(ctx, w, r) })
	return mux
}

// answerLive answers POST /trace/live.
func (a *Agent) answerLive(w http.ResponseWriter, r *http.Request) {
	a.answers.AnswerLive(w, r, a.config.NodeName)
}

// scrapeRoutes are the paths served over TCP.
func (a *Agent) scrapeRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", a.answers.Honest(promhttp.HandlerFor(a.metricsRegistry(), promhttp.HandlerOpts{}).ServeHTTP))
	a.addHealth(mux)
	if a.config.Metrics.PProf {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	}
	return mux
}

// metricsRegistry has the counters of a running agent: the switch's, the process's, and
// Antrea's if the configuration asks for them.
func (a *Agent) metricsRegistry() *prometheus.Registry {
	r := answer.Registry(a.answers)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if a.config.Metrics.AntreaNames {
		r.MustRegister(answer.AntreaCollector{Answers: a.answers})
	}
	return r
}

// runScrapes serves metrics and health over TCP until ctx ends. If the address is not
// available, it logs that and tries again: the switch does not depend on it.
func (a *Agent) runScrapes(ctx context.Context) {
	a.servesTCP(ctx, "metrics", a.config.Metrics.Address, a.serveScrapes)
}

// serveScrapes serves one listener until ctx ends.
func (a *Agent) serveScrapes(ctx context.Context, ln net.Listener) error {
	// No write timeout: a profile may take as long as it was asked to.
	s := halfopen.Server{Limits: scrapeLimits, Handler: a.scrapeRoutes(), Name: "metrics", Log: a.log}
	return s.Serve(ctx, ln)
}

// scrapeLimits bound what peers can hold of the metrics server. Requests have no body.
var scrapeLimits = halfopen.Limits{
	PerPeer: 32, Total: 128, Header: 10 * time.Second, Body: 10 * time.Second, Idle: 2 * time.Minute,
	HeaderBytes: 16 << 10, BodyBytes: 64 << 10,
}

// runPage serves the page until ctx ends. If the address is not available, it logs that and
// tries again: the switch does not depend on it.
func (a *Agent) runPage(ctx context.Context) {
	c := &a.config.Page
	a.servesTCP(ctx, "the page", c.Address, func(ctx context.Context, ln net.Listener) error {
		defer os.Remove(a.config.PageFile())
		here := web.Node{Name: a.config.NodeName, API: a.routes(ctx), Counters: a.answers.CounterText}
		page, err := answer.NewPage(web.Options{Nodes: []web.Node{here}, Plots: c.Plots, Log: a.log}, c.Address, func(url string) error {
			return switchd.WriteOwnFile(a.config.PageFile(), []byte(url+"\n"))
		})
		if err != nil {
			return errors.Join(err, ln.Close())
		}
		return web.Serve(ctx, ln, page)
	})
}

// servesTCP serves something at an address until ctx ends. It tries again after a failure.
func (a *Agent) servesTCP(ctx context.Context, what, address string, serve func(context.Context, net.Listener) error) {
	var lc net.ListenConfig
	for ctx.Err() == nil {
		ln, err := lc.Listen(ctx, "tcp", address)
		if err == nil {
			a.log.Info("served over TCP: "+what, "address", address)
			err = serve(ctx, ln)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		a.log.Warn("not served over TCP, trying again: "+what, "address", address, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(tcpRetry):
		}
	}
}

// tcpRetry is the pause before the next try to listen.
const tcpRetry = 5 * time.Second
