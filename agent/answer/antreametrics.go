package answer

import (
	"strconv"

	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/tables"
	"github.com/prometheus/client_golang/prometheus"
)

// The metrics of Antrea's agent and proxy, under the names that Antrea documents
// (docs/prometheus-integration.md there), so that dashboards keep working. Metrics without a
// meaning here are left out: latency and errors of OpenFlow operations, which become one bundle
// here, and the flow exporter's.

func antreaDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("antrea_"+name, help, labels, nil)
}

var (
	antreaPods      = antreaDesc("agent_local_pod_count", "Pods of this Node.")
	antreaPolicies  = antreaDesc("agent_networkpolicy_count", "Policies that have rules on this Node.")
	antreaIngress   = antreaDesc("agent_ingress_networkpolicy_rule_count", "Ingress rules of policies on this Node.")
	antreaEgress    = antreaDesc("agent_egress_networkpolicy_rule_count", "Egress rules of policies on this Node.")
	antreaFlows     = antreaDesc("agent_ovs_total_flow_count", "Flow entries of all tables.")
	antreaTable     = antreaDesc("agent_ovs_flow_count", "Flow entries of a table.", "table_id")
	antreaConns     = antreaDesc("agent_conntrack_total_connection_count", "Tracked connections.")
	antreaZone      = antreaDesc("agent_conntrack_antrea_connection_count", "Tracked connections of Antrea's zones.")
	antreaMaxConns  = antreaDesc("agent_conntrack_max_connection_count", "Connections that fit into the table.")
	antreaServices  = antreaDesc("proxy_total_services_installed", "Services in the switch.")
	antreaEndpoints = antreaDesc("proxy_total_endpoints_installed", "Endpoints of Services in the switch.")
	antreaDescs     = []*prometheus.Desc{antreaPods, antreaPolicies, antreaIngress, antreaEgress, antreaFlows, antreaTable,
		antreaConns, antreaZone, antreaMaxConns, antreaServices, antreaEndpoints}
)

// AntreaCollector reads the same counters as Registry, under Antrea's names.
type AntreaCollector struct{ Answers *Answers }

// Describe implements prometheus.Collector.
func (AntreaCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range antreaDescs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c AntreaCollector) Collect(ch chan<- prometheus.Metric) {
	all := 0
	for _, t := range c.Answers.tableRecords() {
		n := t.Entries + t.Learned
		all += n
		gauge(ch, antreaTable, n, strconv.Itoa(int(t.ID)))
	}
	gauge(ch, antreaFlows, all)
	stats := c.Answers.Connections.Stats()
	gauge(ch, antreaConns, stats.Entries)
	gauge(ch, antreaMaxConns, stats.Max)
	antrea := 0
	for _, z := range c.Answers.Connections.Zones() {
		if z.Zone == tables.CtZone || z.Zone == tables.CtZoneV6 {
			antrea += int(z.Count)
		}
	}
	gauge(ch, antreaZone, antrea)
	if c.Answers.Objects != nil {
		c.objects(ch)
	}
}

// objects collects the counts of objects on this Node.
func (c AntreaCollector) objects(ch chan<- prometheus.Metric) {
	gauge(ch, antreaPods, len(c.Answers.Objects.Pods(nil)))
	policies, rules := 0, map[string]int{}
	for _, p := range c.Answers.Objects.Policies(nil) {
		if len(p.Rules) > 0 {
			policies++
		}
		for _, r := range p.Rules {
			rules[r.Direction]++
		}
	}
	gauge(ch, antreaPolicies, policies)
	gauge(ch, antreaIngress, rules["Ingress"])
	gauge(ch, antreaEgress, rules["Egress"])
	services, endpoints := 0, 0
	for _, s := range c.Answers.Objects.Services(nil) {
		if s.State == ledger.Installed {
			services++
			endpoints += s.Endpoints
		}
	}
	gauge(ch, antreaServices, services)
	gauge(ch, antreaEndpoints, endpoints)
}
