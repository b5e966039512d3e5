package answer

import (
	"errors"

	"github.com/antrail/antrail/control/kube"
	"github.com/prometheus/client_golang/prometheus"
)

// The state of the watches of the Kubernetes API. The agent's objects may be old, or a kind may
// be absent.

var errNoAPI = errors.New("the objects do not come from the Kubernetes API")

var watchTable = objectTable[kube.WatchStatus]{"RESOURCE\tSTATE\tOBJECTS\tREFUSED\tEVENTS\tFAULTS\tREASON", func(s *kube.WatchStatus) []string {
	return oneLine("%s\t%s\t%d\t%d\t%d\t%d\t%s", s.Resource, s.State, s.Objects, s.Refused, s.Events, s.Faults, orDash(s.Reason))
}}

func (p *Answers) watchRecords(query) ([]kube.WatchStatus, error) {
	if p.API == nil {
		return nil, errNoAPI
	}
	return p.API.Status(), nil
}

var (
	watchUp      = describe("kubernetes_watch_up", "1 if the objects of a resource are current, 0 if they may be old, are not read yet, or the kind is absent.", "resource", "state")
	watchObjects = describe("kubernetes_objects", "Objects of the API that the agent has, by resource.", "resource")
	watchRefused = describe("kubernetes_refused_objects", "Objects of the API whose newest state is refused, by resource.", "resource")
	watchEvents  = describe("kubernetes_events_total", "Events of watches, after the list.", "resource")
	watchFaults  = describe("kubernetes_watch_faults_total", "Lists and watches that failed.", "resource")
)

// watchCollector reads the state of the watches.
type watchCollector struct{ api *kube.Source }

// Describe implements prometheus.Collector.
func (watchCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{watchUp, watchObjects, watchRefused, watchEvents, watchFaults} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c watchCollector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.api.Status() {
		gauge(ch, watchUp, oneIf(s.State == kube.Watching), s.Resource, string(s.State))
		gauge(ch, watchObjects, s.Objects, s.Resource)
		gauge(ch, watchRefused, s.Refused, s.Resource)
		counter(ch, watchEvents, s.Events, s.Resource)
		counter(ch, watchFaults, s.Faults, s.Resource)
	}
}
