package answer

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/kube"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The API: HTTP over the unix socket. Answers are text, or JSON with format=json.
//
//	GET /healthz, /readyz     ?exclude=CONDITION
//	GET /check                checks the agent, and sends echo requests; JSON
//	GET /flows                ?table=NAME&filter=FILTER&names=1&stats=0&sort=1&limit=N; pod=,
//	                          service= or policy=NAMESPACE/NAME selects their entries;
//	                          explain=1, here and below: with the objects behind each line;
//	                          version=OpenFlow10, here and for groups: in its spelling
//	GET /groups               ?names=1&explain=1
//	GET /meters               ?explain=1
//	GET /ports                ?which=NUMBER, NAME or NAMESPACE/POD&names=1
//	GET /workers
//	GET /tables
//	GET /pipeline             tables, the ways between them, and their counters
//	                          (package diagram)
//	GET /conntrack            ?zone=N&address=CIDR&port=N&state=NAME&mark=N/MASK&stats=1&explain=1&limit=N
//	DELETE /conntrack         removes the connections of the same filter
//	GET /conntrack/stats      counters of the connection table
//	GET /fdb
//	GET /drops                dropped packets by table and reason
//	GET /sums                 packet counters by port, which have to add up
//	GET /drops/last           the last ones: ?n=N&pod=NAMESPACE/NAME&reason=NAME&since=NO
//	GET /drops/follow         as lines of JSON, the last ones and those to come;
//	                          {"note":"…"} on silent links and Nodes
//	POST /trace               TraceRequest as JSON; ?explain=1
//	POST /why                 WhyRequest as JSON, answered by WhyAnswer
//	POST /trace/live          LiveTraceRequest as JSON; a line of JSON for each walk,
//	                          until the trace ends; of a running agent only
//	GET /services             also /endpoints, /pods, /policies, /egresses, /trafficcontrols and
//	                          /traceflows: the objects behind the entries;
//	                          ?wide=1: /traceflows by observation, /policies by rule,
//	                          /services with endpoints; format=table, also for nodes and
//	                          watches: api.Listing
//	GET /watches              the state of the watches of the Kubernetes API
//	GET /nodes                the cluster's Nodes with their Pods
//	GET /cookies              the cookies of entries without objects, with counters
//	GET /explain              ?what=LINE, KIND/NAMESPACE/NAME or COOKIE
//	GET /object               ?what=KIND/NAMESPACE/NAME, its fields as YAML
//	GET /counters             counters of traffic, at one moment; JSON
//	GET /metrics              for Prometheus
//	POST /cni/VERB            the CNI plugin's requests (package cni)
//	POST /leave               another agent takes the place of this one (leave.go)
//
// A wrong request is answered with 400 and a sentence, one that the switch does not answer with
// 502. A stream (trace/live, drops/follow) then ends with a line of {"error":"…"}.

var questions = map[string]answer{
	"/flows":           {text: (*Answers).writeFlows, values: func(p *Answers, q query) (any, error) { return p.flowRecords(q) }},
	"/groups":          {text: (*Answers).writeGroups, values: selected((*Answers).groupRecords)},
	"/meters":          {text: (*Answers).writeMeters, values: selected((*Answers).meterRecords)},
	"/ports":           {text: (*Answers).writePorts, values: func(p *Answers, q query) (any, error) { return p.requestedPorts(q) }},
	"/workers":         tableAnswer((*Answers).workerRecords, workerTable),
	"/tables":          tableAnswer((*Answers).tableRecords, tableTable),
	"/pipeline":        {text: (*Answers).writeMap, values: always((*Answers).pipelineMap)},
	"/conntrack":       {text: (*Answers).writeConntrack, values: selected((*Answers).connectionRecords)},
	"/conntrack/stats": {text: (*Answers).writeCTCounters, values: always((*Answers).ctCounterRecords)},
	"/cache":           {text: (*Answers).writeCache, values: always((*Answers).cacheRecords)},
	"/fdb":             {text: (*Answers).writeFDB, values: always((*Answers).macRecords)},
	"/drops":           tableAnswer((*Answers).dropRecords, dropTable),
	"/sums":            {text: (*Answers).writePacketCounters, values: always((*Answers).packetCountersRecord)},
	"/cookies":         {text: (*Answers).writeCookies, values: func(p *Answers, _ query) (any, error) { return p.Cookies() }},
	"/nodes":           listAnswer((*Answers).nodeRows, func(n *api.NodeRecord) cluster.Key { return cluster.Key{Kind: cluster.KindNode, Name: n.Name} }, nodeTable),
	// A watch has no namespace.
	"/watches":         listAnswer((*Answers).watchRecords, func(s *kube.WatchStatus) cluster.Key { return cluster.Key{Name: s.Resource} }, watchTable),
	"/services":        objectAnswer(pipeline.KindIs(cluster.KindService), (*Answers).serviceRows, serviceTable, serviceWide),
	"/endpoints":       listAnswer((*Answers).endpointRows, func(r *api.EndpointsRecord) cluster.Key { return r.Service }, endpointsTable),
	"/pods":            objectAnswer(pipeline.KindIs(cluster.KindPod), (*Answers).podRows, podTable),
	"/policies":        listAnswer((*Answers).policyRows, func(r *control.PolicyRow) cluster.Key { return r.Object }, policyTable, ruleTable),
	"/egresses":        objectAnswer(pipeline.KindIs(cluster.KindEgress), (*Answers).egressRows, egressTable),
	"/trafficcontrols": objectAnswer(pipeline.KindIs(cluster.KindTrafficControl), (*Answers).trafficControlRows, trafficControlTable),
	"/traceflows":      objectAnswer(pipeline.KindIs(cluster.KindTraceflow), (*Answers).traceflowRows, traceflowTable, traceflowWide),
}

// selected are values that a query selects, always those of every query.
func selected[T any](of func(*Answers, query) T) func(*Answers, query) (any, error) {
	return func(p *Answers, q query) (any, error) { return of(p, q), nil }
}

func always[T any](of func(*Answers) T) func(*Answers, query) (any, error) {
	return func(p *Answers, _ query) (any, error) { return of(p), nil }
}

// Routes are the paths of a pipeline, running or not, with its metrics.
func (p *Answers) Routes(metrics prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	for path, a := range questions {
		mux.HandleFunc("GET "+path, p.Honest(func(w http.ResponseWriter, r *http.Request) { p.answer(w, r, a) }))
	}
	mux.HandleFunc("DELETE /conntrack", p.Honest(p.answerFlush))
	mux.HandleFunc("GET /explain", p.Honest(p.answerExplain))
	mux.HandleFunc("GET /drops/last", p.Honest(p.answerDrops))
	mux.HandleFunc("GET /drops/follow", p.answerDropsFollow)
	mux.HandleFunc("GET /object", p.Honest(p.answerObject))
	mux.HandleFunc("GET /counters", p.Honest(func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, p.counters(), nil) }))
	mux.HandleFunc("POST /trace", p.Honest(p.answerTrace))
	mux.HandleFunc("POST /why", p.Honest(p.answerWhy))
	mux.HandleFunc("GET /metrics", p.Honest(promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP))
	return mux
}

func (p *Answers) answer(w http.ResponseWriter, r *http.Request, a answer) {
	q, err := parseQuery(r.URL.Query())
	if err == nil && q.explain && p.Objects == nil && !(r.URL.Path == "/flows" && p.HasOrigins()) {
		err = pipeline.ErrNoObjects
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if q.listed {
		if a.table == nil {
			http.Error(w, "format=table is for objects only; use text or json", http.StatusBadRequest)
			return
		}
		v, err := a.table(p, q)
		WriteJSON(w, v, err)
		return
	}
	if q.json {
		v, err := a.values(p, q)
		WriteJSON(w, v, err)
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

// isPolicy says whether a kind is a policy, also one that antrail does not enforce.
func isPolicy(kind cluster.Kind) bool { return strings.Contains(string(kind), "NetworkPolicy") }
