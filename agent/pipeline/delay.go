package pipeline

import (
	"time"

	"github.com/antrail/antrail/control/cluster"
	"github.com/prometheus/client_golang/prometheus"
)

// newDelays is a histogram of the time until changes of objects are in force.
func newDelays() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "antrail_realisation_seconds",
		Help: "Time from an object's change (its watch event, or that of its file) until the entries that it asks for are in the switch, or gone. " +
			"The kind is that of the object with the entries: Service for a change of an EndpointSlice, Peers for a Pod that policies select.",
		Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"kind"})
}

// ObserveDelays makes the histogram and fills it from now on.
func (p *Pipeline) ObserveDelays() {
	p.Delays = newDelays()
	p.Objects.ObserveDelays(func(k cluster.Kind, d time.Duration) {
		p.Delays.WithLabelValues(string(k)).Observe(d.Seconds())
	})
}
