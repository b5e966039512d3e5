package answer

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/conntrack/reassembly"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/prometheus/client_golang/prometheus"
)

// Counters of the connection table. Text, JSON and metrics come from one list.

// ctValue is one number of a ctCounter.
type ctValue struct {
	label string
	n     uint64
}

// ctCounter is a number, or one for each value of a label.
type ctCounter struct {
	name, help, label string
	kind              prometheus.ValueType
	read              func(*ctSnapshot) []ctValue
}

// ctSnapshot has what the counters are read from.
type ctSnapshot struct {
	conntrack.Stats
	zones     []conntrack.ZoneLimit
	ports     []conntrack.PortStats
	names     *flow.Names
	fragments reassembly.Stats
	outcomes  [door.Outcomes]uint64 // of revalidated connections
}

func (p *Answers) ctSnapshot() *ctSnapshot {
	return &ctSnapshot{p.Connections.Stats(), p.Connections.Zones(), p.Connections.Ports(), p.Switch.Names(), p.Switch.Fragments(), p.Connections.Revalidated()}
}

var ctCounters = []ctCounter{
	{"ct_entries", "Tracked connections; some may have expired and wait for the sweeper.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.Entries) })},
	{"ct_limit", "Connections that fit into the table.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.Max) })},
	{"ct_zone_entries", "Tracked connections of a zone.", "zone", prometheus.GaugeValue,
		byZone(func(z *conntrack.ZoneLimit) uint64 { return uint64(z.Count) })},
	{"ct_zone_limit", "Connections that fit into a zone; 0 where only the table's limit holds.", "zone", prometheus.GaugeValue,
		byZone(func(z *conntrack.ZoneLimit) uint64 { return uint64(z.Limit) })},
	{"ct_port_entries", "Tracked connections that a port's packets began.", "port", prometheus.GaugeValue,
		byPort(func(p *conntrack.PortStats) uint64 { return uint64(p.Entries) })},
	{"ct_port_refused_total", "Packets of a port dropped because their connection could not be made.", "port", prometheus.CounterValue,
		byPort(func(p *conntrack.PortStats) uint64 { return p.Refused })},
	{"ct_port_evicted_total", "Connections of a port removed to make room for new ones.", "port", prometheus.CounterValue,
		byPort(func(p *conntrack.PortStats) uint64 { return p.Evicted })},
	{"ct_created_total", "Connections made.", "", prometheus.CounterValue,
		one(func(s *ctSnapshot) uint64 { return s.Created })},
	{"ct_expired_total", "Connections removed after their timeout.", "", prometheus.CounterValue,
		one(func(s *ctSnapshot) uint64 { return s.Expired })},
	{"ct_early_drop_total", "Connections removed to make room for new ones: never answered, over, or answered ones of a port above its fair share.", "", prometheus.CounterValue,
		one(func(s *ctSnapshot) uint64 { return s.EarlyDropped })},
	{"ct_raced_total", "Connections that another worker made at the same time.", "", prometheus.CounterValue,
		one(func(s *ctSnapshot) uint64 { return s.Raced })},
	{"ct_probe_max", "Longest chain of connections met in the index; the limit is 80.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.ProbeMax) })},
	{"ct_nat_tries_total", "Searches for a free NAT tuple, by how many tuples were tried at most.", "tries", prometheus.CounterValue, byTries},
	{"ct_sweep_nanoseconds_total", "Time spent looking for expired connections.", "", prometheus.CounterValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.SweepTime) })},
	{"ct_restore_entries", "Restored connections.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.Restored.Entries) })},
	{"ct_restore_torn", "Connections that could not be restored.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.Restored.Torn) })},
	{"ct_restore_nanoseconds", "Time that restoring connections took.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.Restored.Took) })},
	{"ct_revalidated_total", "Restored connections by result of revalidation: kept, or removed as denied, moved to another endpoint, or of an unknown sender.",
		"outcome", prometheus.CounterValue, byOutcome},
	{"ct_insert_fail_total", "Packets dropped because their connection could not be made, by reason.", "reason", prometheus.CounterValue, byReason},
	{"frag_datagrams", "Datagrams whose fragments wait or are refused.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.fragments.Datagrams) })},
	{"frag_waiting", "Fragments that wait for the rest of their datagram.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.fragments.Fragments) })},
	{"frag_bytes", "Memory in which fragments wait.", "", prometheus.GaugeValue,
		one(func(s *ctSnapshot) uint64 { return uint64(s.fragments.Bytes) })},
	{"frag_completed_total", "Datagrams that became whole, once for each ct() that they waited at.", "", prometheus.CounterValue,
		one(func(s *ctSnapshot) uint64 { return s.fragments.Completed })},
	{"ct_tcp_out_of_window_total", "TCP segments outside the window; they pass and change no state.", "", prometheus.CounterValue,
		one(func(s *ctSnapshot) uint64 { return s.OutOfWindow })},
}

func one(read func(*ctSnapshot) uint64) func(*ctSnapshot) []ctValue {
	return func(s *ctSnapshot) []ctValue { return []ctValue{{"", read(s)}} }
}

func byZone(read func(*conntrack.ZoneLimit) uint64) func(*ctSnapshot) []ctValue {
	return func(s *ctSnapshot) (all []ctValue) {
		for i := range s.zones {
			all = append(all, ctValue{strconv.Itoa(int(s.zones[i].Zone)), read(&s.zones[i])})
		}
		return all
	}
}

// byPort labels by the port's name, or by #number if the switch has no such port: connections
// outlive ports.
func byPort(read func(*conntrack.PortStats) uint64) func(*ctSnapshot) []ctValue {
	return func(s *ctSnapshot) (all []ctValue) {
		for i := range s.ports {
			label := s.names.Port(s.ports[i].Port)
			if label == "" {
				label = "#" + strconv.Itoa(int(s.ports[i].Port))
			}
			all = append(all, ctValue{label, read(&s.ports[i])})
		}
		return all
	}
}

func byReason(s *ctSnapshot) (all []ctValue) {
	for reason, n := range s.Drops {
		if r := conntrack.DropReason(reason); r != conntrack.DropNone {
			all = append(all, ctValue{r.String(), n})
		}
	}
	return all
}

func byOutcome(s *ctSnapshot) (all []ctValue) {
	for outcome, name := range outcomeNames {
		if name != "" {
			all = append(all, ctValue{name, s.outcomes[outcome]})
		}
	}
	return all
}

func byTries(s *ctSnapshot) (all []ctValue) {
	for i, n := range s.NATTries {
		all = append(all, ctValue{strconv.Itoa(1<<i - 1), n})
	}
	return all
}

func (p *Answers) ctCounterRecords() []api.Counter {
	var all []api.Counter
	s := p.ctSnapshot()
	for i := range ctCounters {
		for _, v := range ctCounters[i].read(s) {
			all = append(all, api.Counter{Name: ctCounters[i].name, Label: v.label, Value: v.n})
		}
	}
	return all
}

func (p *Answers) writeCTCounters(w io.Writer, _ query) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tOF\tVALUE\tMEANING")
	s := p.ctSnapshot()
	for i := range ctCounters {
		c := &ctCounters[i]
		for _, v := range c.read(s) {
			of := "-"
			if c.label != "" {
				of = c.label + " " + v.label
			}
			fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", c.name, of, v.n, c.help)
		}
	}
	return t.Flush()
}

// ctDescs describes the counters for Prometheus, in their order.
var ctDescs = func() (all []*prometheus.Desc) {
	for _, c := range ctCounters {
		var labels []string
		if c.label != "" {
			labels = []string{c.label}
		}
		all = append(all, describe(c.name, c.help, labels...))
	}
	return all
}()

// collectConntrack gives the counters to Prometheus.
func (p *Answers) collectConntrack(ch chan<- prometheus.Metric) {
	s := p.ctSnapshot()
	for i := range ctCounters {
		c := &ctCounters[i]
		for _, v := range c.read(s) {
			var labels []string
			if c.label != "" {
				labels = []string{v.label}
			}
			ch <- prometheus.MustNewConstMetric(ctDescs[i], c.kind, float64(v.n), labels...)
		}
	}
}

// outcomeNames are labels of metrics. Connections of other zones are not counted.
var outcomeNames = [door.Outcomes]string{door.Kept: "kept", door.Denied: "denied", door.Moved: "moved", door.Unknown: "unknown"}
