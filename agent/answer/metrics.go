package answer

import (
	"context"
	"strconv"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/door"
	"github.com/prometheus/client_golang/prometheus"
)

// collector reads the switch's counters when Prometheus scrapes; nothing is counted twice.
type collector struct{ p *Answers }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("antrail_"+name, help, labels, nil)
}

var (
	portPackets  = describe("port_packets_total", "Packets by port and direction (rx: into the switch).", "port", "direction")
	portBytes    = describe("port_bytes_total", "Bytes by port and direction (rx: into the switch).", "port", "direction")
	portDrops    = describe("port_drops_total", "Frames that a port dropped, by the driver's reason.", "port", "reason")
	portNoMAC    = describe("port_macs_not_learned_total", "Frames whose source MAC address NORMAL did not learn, by reason: the port's share of the table is full, or the address is configured on another port.", "port", "reason")
	portUp       = describe("port_up", "1 when the port's link is up, 0 when it is down or gone.", "port", "driver")
	tablePkts    = describe("table_packets_total", "Packets that were looked up in a table.", "table")
	tableHits    = describe("table_matched_total", "Packets that an entry of the table matched.", "table")
	tableSize    = describe("table_entries", "Flow entries of a table, including learned ones.", "table")
	drops        = describe("dropped_packets_total", "Packets dropped in the pipeline, by the table where their walk ended and the reason.", "table", "reason")
	dropsMissed  = describe("drops_not_kept_total", "Dropped packets that came too fast to be kept for antrail drops; other counters include them.")
	policyPkts   = describe("policy_packets_total", "Packets that a policy's rules decided, and those of the connections they allowed.", "kind", "namespace", "name")
	policyBytes  = describe("policy_bytes_total", "Bytes of the same packets.", "kind", "namespace", "name")
	sessions     = describe("rule_sessions_total", "Connections that a policy's rule allowed, or packets that it dropped or rejected.", ruleLabels...)
	rulePkts     = describe("rule_packets_total", "Packets that a policy's rule decided, and those of the connections it allowed.", ruleLabels...)
	ruleBytes    = describe("rule_bytes_total", "Bytes of the same packets.", ruleLabels...)
	refusals     = describe("refused_packets_total", "Packets to reject, by reason (service: no endpoint; length: too long for the tunnel) and outcome.", "by", "outcome")
	auditPkts    = describe("audit_packets_total", "Packets that policies logged.")
	auditLines   = describe("audit_lines_total", "Lines in the audit log of policies.")
	auditDropped = describe("audit_dropped_total", "Packets without a line, because there were too many lines in a second.")
	workerTime   = describe("worker_seconds_total", "Time of workers by state: working, spinning, asleep.", "worker", "state")
	workerAwake  = describe("worker_kept_awake_seconds_total", "Time for which a worker kept the machine's idle processors awake, because pods talked, or during garbage collection.", "worker")
	workerPkts   = describe("worker_packets_total", "Packets that a worker received.", "worker")
	groupPkts    = describe("group_packets_total", "Packets sent to a group.", "group")
	groupBytes   = describe("group_bytes_total", "Bytes sent to a group.", "group")
	meterDrops   = describe("meter_dropped_packets_total", "Packets that a meter dropped.", "meter")
	handedOver   = describe("hand_over_pause_seconds", "Time in which no packet moved when the switch took over from its predecessor; 0 without a takeover.")
	sleeps       = describe("worker_sleeps_total", "Times a worker went to sleep because no port had a packet.")
)

// ruleLabels identify a rule. Rules with equal names count together.
var ruleLabels = []string{"kind", "namespace", "policy", "rule", "direction", "action"}

// Describe implements prometheus.Collector.
func (collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		portPackets, portBytes, portDrops, portNoMAC, portUp, tablePkts, tableHits, tableSize, drops, dropsMissed, portCounters, policyPkts, policyBytes,
		sessions, rulePkts, ruleBytes, refusals, auditPkts, auditLines, auditDropped, handedOver, sleeps, workerTime, workerAwake, workerPkts,
		cacheEntries, cacheRoom, cacheMegaflows, cacheShapes, cacheEvents, objectStates, objectEdits, groupPkts, groupBytes, meterDrops,
		offloadEntries, offloadConns, offloadPackets, offloadBytes, offloadDropped, offloadEvents,
	} {
		ch <- d
	}
	for _, d := range ctDescs {
		ch <- d
	}
}

// figure are the types of counters.
type figure interface{ ~int | ~uint64 | ~float64 }

// counter sends a counter to Prometheus.
func counter[N figure](ch chan<- prometheus.Metric, d *prometheus.Desc, n N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// gauge sends a gauge to Prometheus.
func gauge[N figure](ch chan<- prometheus.Metric, d *prometheus.Desc, n N, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	c.ports(ch)
	c.tables(ch)
	c.workers(ch)
	c.policies(ch)
	c.packetIns(ch)
	c.objectCounts(ch)
	c.groups(ch)
	c.p.collectConntrack(ch)
	c.p.collectCache(ch)
	c.p.collectOffload(ch)
	c.p.collectPacketCounters(ch)
	counter(ch, dropsMissed, c.p.Drops.MissedSoFar())
	counter(ch, sleeps, c.p.Switch.Sleeps())
	gauge(ch, handedOver, c.p.handOverPause().Seconds())
}

// ports collects the metrics of each port: packets and bytes of both directions, drops by
// reason, and frames whose source MAC was not learned.
func (c collector) ports(ch chan<- prometheus.Metric) {
	for _, p := range c.p.PortRecords() {
		gauge(ch, portUp, oneIf(p.Up), p.Name, p.Driver)
		if p.Missing != "" { // no counters
			continue
		}
		counter(ch, portPackets, p.Rx.Packets, p.Name, "rx")
		counter(ch, portPackets, p.Tx.Packets, p.Name, "tx")
		counter(ch, portBytes, p.Rx.Bytes, p.Name, "rx")
		counter(ch, portBytes, p.Tx.Bytes, p.Name, "tx")
		for reason, n := range p.Reasons {
			counter(ch, portDrops, n, p.Name, reason)
		}
		for reason, n := range p.MACs.NotLearned {
			counter(ch, portNoMAC, n, p.Name, reason)
		}
	}
}

// tables collects the metrics of each table: lookups, hits, size, and drops by reason.
func (c collector) tables(ch chan<- prometheus.Metric) {
	for _, t := range c.p.tableRecords() {
		counter(ch, tablePkts, t.Lookups, t.Name)
		counter(ch, tableHits, t.Matched, t.Name)
		gauge(ch, tableSize, t.Entries+t.Learned, t.Name)
		for reason, n := range t.Drops {
			counter(ch, drops, n, t.Name, reason)
		}
	}
}

// workers collects what each worker received, and its time by state.
func (c collector) workers(ch chan<- prometheus.Metric) {
	for _, w := range c.p.workerRecords() {
		no := strconv.Itoa(w.No)
		counter(ch, workerPkts, w.Packets, no)
		counter(ch, workerAwake, w.KeptAwakeNS.Seconds(), no)
		for state, spent := range map[string]time.Duration{"working": w.WorkingNS, "spinning": w.SpinningNS, "asleep": w.AsleepNS} {
			counter(ch, workerTime, spent.Seconds(), no, state)
		}
	}
}

// policies collects the counters of policies and their rules.
func (c collector) policies(ch chan<- prometheus.Metric) {
	rules := map[[6]string]policy.RuleCounters{} // rules may have equal names
	for _, r := range c.p.policies() {
		k := r.Object
		counter(ch, policyPkts, r.Packets, string(k.Kind), k.Namespace, k.Name)
		counter(ch, policyBytes, r.Bytes, string(k.Kind), k.Namespace, k.Name)
		for _, rule := range r.Rules {
			labels := [6]string{string(k.Kind), k.Namespace, k.Name, rule.Name, rule.Direction, string(rule.Action)}
			rules[labels] = rules[labels].Plus(rule.RuleCounters)
		}
	}
	for labels, n := range rules {
		counter(ch, sessions, n.Sessions, labels[:]...)
		counter(ch, rulePkts, n.Packets, labels[:]...)
		counter(ch, ruleBytes, n.Bytes, labels[:]...)
	}
}

// groups collects the counters of groups, and the drops of meters.
func (c collector) groups(ch chan<- prometheus.Metric) {
	for _, g := range c.p.groupRecords(query{}) {
		id := strconv.FormatUint(uint64(g.ID), 10)
		counter(ch, groupPkts, g.Packets, id)
		counter(ch, groupBytes, g.Bytes, id)
	}
	for _, m := range c.p.meterRecords(query{}) {
		dropped := uint64(0)
		for _, n := range m.Dropped {
			dropped += n
		}
		counter(ch, meterDrops, dropped, strconv.FormatUint(uint64(m.ID), 10))
	}
}

// packetIns collects the outcomes of packets that the switch rejects or the agent logs.
func (c collector) packetIns(ch chan<- prometheus.Metric) {
	s := c.p.Switch.Answers()
	for by, n := range map[string]door.Answers{"service": s.Service, "policy": s.Policy, "length": s.Length} {
		counter(ch, refusals, n.Answered, by, "answered")
		counter(ch, refusals, n.Silent, by, "not_answerable")
		counter(ch, refusals, n.Limited, by, "limited")
		counter(ch, refusals, n.Failed, by, "failed")
	}
	if a := c.p.Packets.Audit; a != nil {
		counter(ch, auditPkts, a.Packets.Load())
		counter(ch, auditLines, a.Lines.Load())
		counter(ch, auditDropped, a.Dropped.Load())
	}
}

// policies are the policies with their counters; none with flow files.
func (p *Answers) policies() []control.PolicyRow {
	if p.Objects == nil {
		return nil
	}
	return p.Objects.Policies(p.counter())
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// handOverPause is how long no packet moved when the switch took over.
func (p *Answers) handOverPause() time.Duration {
	if p.Remote == nil {
		return 0
	}
	info, err := p.Remote.Info(context.Background())
	if err != nil {
		return 0 // all other metrics are missing, too
	}
	return time.Duration(info.PauseNS)
}
