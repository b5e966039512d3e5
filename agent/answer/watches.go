package answer

import (
	"errors"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/kube"
	"github.com/prometheus/client_golang/prometheus"
)

// How the watches of the Kubernetes API stand: what the agent goes by may be old,
// or lack a kind.

var errNoAPI = errors.New("the objects do not come from the Kubernetes API")

var watchTable = objectTable[kube.WatchStatus]{"RESOURCE\tSTATE\tOBJECTS\tREFUSED\tEVENTS\tFAULTS\tREASON", func(s *kube.WatchStatus) []string {
	return oneLine("%s\t%s\t%d\t%d\t%d\t%d\t%s", s.Resource, s.State, s.Objects, s.Refused, s.Events, s.Faults, orDash(s.Reason))
}}

// watchKey returns the key under which a watch is listed. A watch has no namespace.
func watchKey(s *kube.WatchStatus) cluster.Key { return cluster.Key{Name: s.Resource} }

func (p *Answers) watchRecords(query) ([]kube.WatchStatus, error) {
	if p.API == nil {
		return nil, errNoAPI
	}
	return p.API.Status(), nil
}

var (
	watchUp      = describe("kubernetes_watch_up", "1 when what is held of a resource is what the API server has, 0 when it may be old, is not read yet, or the kind is absent.", "resource", "state")
	watchObjects = describe("kubernetes_objects", "Objects of the API that are held, by resource.", "resource")
	watchRefused = describe("kubernetes_refused_objects", "Objects of the API that are refused as they are now, by resource.", "resource")
	watchEvents  = describe("kubernetes_events_total", "Objects that came one by one from a watch, after the list.", "resource")
	watchFaults  = describe("kubernetes_watch_faults_total", "Lists and watches that failed.", "resource")
)

// watchCollector reads how the watches stand.
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
