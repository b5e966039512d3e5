package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/control"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The API: HTTP over the unix socket, text unless format=json is asked for.
//
//	GET /healthz, /readyz     ?exclude=CONDITION
//	GET /check                looks at the agent, and sends echo requests; JSON
//	GET /flows                ?table=NAME&names=1&stats=0&sort=1&limit=N; explain=1, here and
//	                          where it says so: with the objects behind each line
//	GET /groups               ?names=1&explain=1
//	GET /meters               ?explain=1
//	GET /ports                ?which=NUMBER, NAME or NAMESPACE/POD&names=1
//	GET /workers
//	GET /tables
//	GET /pipeline             tables, the ways between them, and what passed there
//	                          (package diagram)
//	GET /conntrack            ?zone=N&address=CIDR&port=N&state=NAME&mark=N/MASK&stats=1&explain=1&limit=N
//	DELETE /conntrack         the same filter, and the connections are gone
//	GET /conntrack/stats      counters of the connection table
//	GET /fdb
//	GET /drops                lost packets by table and reason
//	GET /sums                 what became of packets, by port: sums that agree
//	GET /drops/last           the last ones: ?n=N&pod=NAMESPACE/NAME&reason=NAME&since=NO
//	GET /drops/follow         the same as lines of JSON, and those to come; {"note":"…"} of silent links and Nodes
//	POST /trace               TraceRequest as JSON; ?explain=1
//	POST /why                 WhyRequest as JSON, answered by WhyAnswer
//	POST /trace/live          LiveTraceRequest as JSON; a line of JSON for each walk,
//	                          until the trace ends; of a running agent only
//	GET /services             what the entries come from; /pods, /policies and
//	                          /egresses and /trafficcontrols likewise;
//	                          /policies?wide=1 by rule
//	GET /watches              how the watches of the Kubernetes API stand
//	GET /nodes                the cluster's Nodes with their Pods
//	GET /explain              ?what=LINE or KIND/NAMESPACE/NAME
//	GET /object               ?what=KIND/NAMESPACE/NAME, its fields as YAML
//	GET /counters             what changes as packets pass, at one moment; JSON
//	GET /metrics              for Prometheus
//	POST /cni/VERB            the CNI plugin's requests (package cni)
//	POST /leave               another agent is to take the place of this one (leave.go)
//
// A question that makes no sense is answered with 400 and a sentence, one that the switch
// does not answer with 502. A stream (trace/live, drops/follow) then ends with a line of
// {"error":"…"}.

// query is what the parameters of a request say.
type query struct {
	table       string // name or number, "" for all
	port        string // name, number or Pod, "" for all
	connections conntrack.Filter
	names       bool // names in place of numbers
	stats       bool
	sorted      bool
	wide        bool // more columns, or more lines
	explain     bool // with the objects behind each line
	json        bool
	limit       int // entries or connections at most; 0 for all
}

func parseQuery(v url.Values) (query, error) {
	q := query{table: v.Get("table"), port: v.Get("which"), stats: true}
	for name, to := range map[string]*bool{"names": &q.names, "stats": &q.stats, "sort": &q.sorted, "wide": &q.wide, "explain": &q.explain} {
		if !v.Has(name) {
			continue
		}
		yes, err := strconv.ParseBool(v.Get(name))
		if err != nil {
			return q, fmt.Errorf("%s=%q is neither 0 nor 1", name, v.Get(name))
		}
		*to = yes
	}
	var err error
	if text := v.Get("limit"); text != "" {
		if q.limit, err = strconv.Atoi(text); err != nil || q.limit < 1 {
			return q, fmt.Errorf("limit=%.60q is no number above 0", text)
		}
	}
	if q.connections, err = parseFilter(v); err != nil {
		return q, err
	}
	switch v.Get("format") {
	case "", "text":
	case "json":
		q.json = true
	default:
		return q, fmt.Errorf("format=%q is neither text nor json", v.Get("format"))
	}
	return q, nil
}

// answer is one thing that can be asked: as text, and as values.
type answer struct {
	text   func(*pipeline, io.Writer, query) error
	values func(*pipeline, query) (any, error)
}

var answers = map[string]answer{
	"/flows": {(*pipeline).writeFlows, func(p *pipeline, q query) (any, error) { return p.flowRecords(q) }},
	"/groups": {(*pipeline).writeGroups, func(p *pipeline, q query) (any, error) {
		return p.groupRecords(q), nil
	}},
	"/meters": {(*pipeline).writeMeters, func(p *pipeline, q query) (any, error) {
		return p.meterRecords(q), nil
	}},
	"/ports": {(*pipeline).writePorts, func(p *pipeline, q query) (any, error) { return p.portsAsked(q) }},
	"/workers": {(*pipeline).writeWorkers, func(p *pipeline, _ query) (any, error) {
		return p.workerRecords(), nil
	}},
	"/tables": {(*pipeline).writeTables, func(p *pipeline, _ query) (any, error) {
		return p.tableRecords(), nil
	}},
	"/pipeline": {(*pipeline).writeMap, func(p *pipeline, _ query) (any, error) {
		return p.pipelineMap(), nil
	}},
	"/conntrack": {(*pipeline).writeConntrack, func(p *pipeline, q query) (any, error) {
		return p.connectionRecords(q), nil
	}},
	"/conntrack/stats": {(*pipeline).writeCTCounters, func(p *pipeline, _ query) (any, error) {
		return p.ctCounterRecords(), nil
	}},
	"/cache": {(*pipeline).writeCache, func(p *pipeline, _ query) (any, error) {
		return p.cacheRecords(), nil
	}},
	"/fdb": {(*pipeline).writeFDB, func(p *pipeline, _ query) (any, error) {
		return p.macRecords(), nil
	}},
	"/drops": {(*pipeline).writeDrops, func(p *pipeline, _ query) (any, error) {
		return p.dropRecords(), nil
	}},
	"/nodes": {(*pipeline).writeNodes, func(p *pipeline, _ query) (any, error) { return p.nodeRows() }},
	"/sums": {(*pipeline).writeSums, func(p *pipeline, _ query) (any, error) {
		return p.sumsRecord(), nil
	}},
	"/watches":  {(*pipeline).writeWatches, func(p *pipeline, _ query) (any, error) { return p.watchRecords() }},
	"/services": objectAnswer(withRefused((*pipeline).serviceRows, kindIs(control.KindService), refusedService), serviceRecord, writeServices),
	"/pods":     objectAnswer(withRefused((*pipeline).podRows, kindIs(control.KindPod), refusedPod), podRecord, writePods),
	"/policies": objectAnswer(withRefused((*pipeline).policies, isPolicy, refusedPolicy), policyRecord, writePolicies).
		wide(objectAnswer(withRefused((*pipeline).policies, isPolicy, refusedPolicy), policyRecord, writeRules)),
	"/egresses": objectAnswer(withRefused((*pipeline).egressRows, kindIs(control.KindEgress), refusedEgress), egressRecord, writeEgresses),
	"/trafficcontrols": objectAnswer(withRefused((*pipeline).trafficControlRows, kindIs(control.KindTrafficControl), refusedTrafficControl),
		trafficControlRecord, writeTrafficControls),
}

// routes is the API of a running agent.
func (a *Agent) routes(ctx context.Context) http.Handler {
	mux := a.pipeline.routes(a.metricsRegistry())
	a.addHealth(mux)
	mux.HandleFunc("GET /check", a.honest(a.answerCheck))
	mux.HandleFunc("POST /trace/live", a.answerLive)
	mux.HandleFunc("POST /cni/{verb}", a.answerCNI)
	mux.HandleFunc("POST /leave", func(w http.ResponseWriter, r *http.Request) { a.answerLeave(ctx, w, r) })
	return mux
}

// routes is what can be asked of a pipeline, running or not, with its metrics.
func (p *pipeline) routes(metrics prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	for path, a := range answers {
		mux.HandleFunc("GET "+path, p.honest(func(w http.ResponseWriter, r *http.Request) { p.answer(w, r, a) }))
	}
	mux.HandleFunc("DELETE /conntrack", p.honest(p.answerFlush))
	mux.HandleFunc("GET /explain", p.honest(p.answerExplain))
	mux.HandleFunc("GET /drops/last", p.honest(p.answerLost))
	mux.HandleFunc("GET /drops/follow", p.answerLostFollow)
	mux.HandleFunc("GET /object", p.honest(p.answerObject))
	mux.HandleFunc("GET /counters", p.honest(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, p.counters(), nil) }))
	mux.HandleFunc("POST /trace", p.honest(p.answerTrace))
	mux.HandleFunc("POST /why", p.honest(p.answerWhy))
	mux.HandleFunc("GET /metrics", p.honest(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP))
	return mux
}

func (p *pipeline) answer(w http.ResponseWriter, r *http.Request, a answer) {
	q, err := parseQuery(r.URL.Query())
	if err == nil && q.explain && p.objects == nil {
		err = errNoObjects
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if q.json {
		v, err := a.values(p, q)
		writeJSON(w, v, err)
		return
	}
	var b bytes.Buffer
	if err := a.text(p, &b, q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write(b.Bytes())
}

// writeJSON answers with v, or with the reason why there is none.
func writeJSON(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	e.Encode(v)
}
