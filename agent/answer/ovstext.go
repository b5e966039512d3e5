package answer

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables/programs"
)

// Answers as text. If Open vSwitch has a tool for it, the text is that tool's with its header
// line, so that both can be compared. The tools are ovs-ofctl -O OpenFlow15 dump-flows, dump-groups,
// dump-meters, dump-ports; ovs-appctl dpctl/dump-conntrack, fdb/show.

// names are the pipeline's names if the query asks for names; otherwise nil.
func (p *Answers) names(q query) *flow.Names {
	if q.names {
		return p.Switch.Names()
	}
	return nil
}

// flows are the entries that a query selects.
func (p *Answers) flows(q query) ([]telemetry.FlowStats, error) {
	all := p.Switch.Flows()
	if q.table != "" {
		id, err := p.tableID(q.table)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(f telemetry.FlowStats) bool { return f.Table != id })
	}
	all, err := p.chosen(all, q)
	if err != nil {
		return nil, err
	}
	if names := p.names(q); q.sorted {
		slices.SortStableFunc(all, func(a, b telemetry.FlowStats) int {
			if a.Table != b.Table || a.Priority != b.Priority {
				return 0 // equal: entries come by table and priority
			}
			return strings.Compare(a.Match.Text(names), b.Match.Text(names))
		})
	}
	if q.limit > 0 {
		all = all[:min(len(all), q.limit)]
	}
	return all, nil
}

// tableNames are the names of all tables.
func (p *Answers) tableNames() (all []string) {
	for _, t := range p.Switch.Tables() {
		all = append(all, p.TableName(t.ID))
	}
	return all
}

// tableID is the number of a table, given by name or number.
func (p *Answers) tableID(table string) (uint8, error) {
	if id, ok := p.Switch.Names().TableID(table); ok {
		return id, nil
	}
	id, err := strconv.ParseUint(table, 0, 8)
	if err != nil || !slices.ContainsFunc(p.Switch.Tables(), func(t telemetry.TableStats) bool { return t.ID == uint8(id) }) {
		return 0, fmt.Errorf("there is no table %q%s; antrail dump-tables lists them", table, flow.Suggest(table, p.tableNames()))
	}
	return uint8(id), nil
}

func (p *Answers) writeFlows(w io.Writer, q query) error {
	all, err := p.flows(q)
	if err != nil {
		return err
	}
	if q.stats {
		fmt.Fprintln(w, map[flow.Version]string{flow.OpenFlow15: "OFPST_FLOW reply (OF1.5) (xid=0x2):", flow.OpenFlow10: "NXST_FLOW reply (xid=0x4):"}[q.version])
	}
	var line []byte
	for _, e := range all {
		f := flow.Format{Names: p.names(q), Version: q.version}
		if q.stats {
			f.Stats = &flow.Stats{Packets: e.Packets, Bytes: e.Bytes, Duration: e.Duration, Idle: e.Idle}
		}
		line = append(e.AppendText(line[:0], f), '\n')
		w.Write(line)
		if q.explain {
			writeOrigins(w, p.entryOrigins(q, e.Entry))
			writeMarks(w, programs.MarkNames(p.Switch.Names()), e.Entry)
		}
	}
	return nil
}

func (p *Answers) flowRecords(q query) ([]api.Flow, error) {
	all, err := p.flows(q)
	if err != nil {
		return nil, err
	}
	records, names := []api.Flow{}, p.Switch.Names()
	marks := programs.MarkNames(names)
	for _, e := range all {
		r := api.Flow{
			Table: p.TableName(e.Table), TableID: e.Table, Priority: e.Priority, Learned: e.Learned,
			Match: e.Match.Text(names), Actions: flow.ActionsText(e.Actions, flow.Format{Names: names}),
			Packets: e.Packets, Bytes: e.Bytes, DurationNS: e.Duration, IdleNS: e.Idle,
			Asks: marks.Match(e.Table, e.Match), Sets: marks.Sets(e.Table, e.Entry.Actions), Origins: p.entryOrigins(q, e.Entry),
		}
		if e.Cookie != 0 {
			r.Cookie = fmt.Sprintf("%#x", e.Cookie)
		}
		records = append(records, r)
	}
	return records, nil
}

func (p *Answers) writeGroups(w io.Writer, q query) error {
	fmt.Fprintln(w, map[flow.Version]string{flow.OpenFlow15: "OFPST_GROUP_DESC reply (OF1.5) (xid=0x2):", flow.OpenFlow10: "NXST_GROUP_DESC reply (xid=0x2):"}[q.version])
	for _, g := range p.Switch.Groups() {
		fmt.Fprintln(w, string(g.AppendText(nil, flow.Format{Names: p.names(q), Version: q.version})))
		writeOrigins(w, p.groupOrigins(q, g.ID))
	}
	return nil
}

func (p *Answers) writeMeters(w io.Writer, q query) error {
	fmt.Fprintln(w, "OFPST_METER_CONFIG reply (OF1.5) (xid=0x2):")
	for i, m := range p.Switch.Meters() {
		if i > 0 {
			fmt.Fprintln(w) // ovs-ofctl prints an empty line between meters
		}
		fmt.Fprintln(w, m.Text())
		writeOrigins(w, p.meterOrigins(q, m.ID))
	}
	return nil
}

// writePorts prints each port's counters, its link and its driver.
func (p *Answers) writePorts(w io.Writer, q query) error {
	all, err := p.requestedPorts(q)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "OFPST_PORT reply (OF1.5) (xid=0x2): %d ports\n", len(all))
	for _, r := range all {
		who := strconv.Itoa(int(r.No))
		if q.names {
			who = strconv.Quote(r.Name)
		}
		if r.Missing != "" {
			fmt.Fprintf(w, "  port %2s: not in the switch: %s\n", who, r.Missing)
			continue
		}
		fmt.Fprintf(w, "  port %2s: rx pkts=%d, bytes=%d, drop=%d, errs=%d\n", who, r.Rx.Packets, r.Rx.Bytes, r.Rx.Dropped, r.Rx.Errors)
		fmt.Fprintf(w, "           tx pkts=%d, bytes=%d, drop=%d, errs=%d\n", r.Tx.Packets, r.Tx.Bytes, r.Tx.Dropped, r.Tx.Errors)
		fmt.Fprintf(w, "           %s: %s (%s), link %s %s, mtu %d, addr %s\n", r.Driver, r.Mode, r.Why, r.Link, upOrDown(r.Up), r.MTU, r.MAC)
		fmt.Fprintf(w, "           %v\n", &r.Offload)
		fmt.Fprintf(w, "           worker %d, of whose time it takes %.1f %%\n", r.Worker, 100*r.Load)
		for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
			fmt.Fprintf(w, "           %s: %d\n", reason, r.Reasons[reason])
		}
		for _, reason := range slices.Sorted(maps.Keys(r.MACs.NotLearned)) {
			fmt.Fprintf(w, "           source MAC not learned, %s: %d\n", reason, r.MACs.NotLearned[reason])
		}
		if q.explain && r.Pod != "" {
			fmt.Fprintf(w, "    # Pod/%s\n", r.Pod)
		}
	}
	return nil
}

var workerTable = objectTable[api.WorkerRecord]{
	"WORKER\tPORTS\tLOAD\tPACKETS\tBATCHES\tWORKING\tSPINNING\tASLEEP\tSLEEPS\tKEPT AWAKE\tWOKEN WITHIN",
	func(r *api.WorkerRecord) []string {
		return oneLine("%d\t%d\t%.1f %%\t%d\t%d\t%v\t%v\t%v\t%d\t%v\t%s", r.No, len(r.OFPorts), 100*r.Load, r.Packets, r.Batches,
			r.WorkingNS.Round(time.Millisecond), r.SpinningNS.Round(time.Millisecond), r.AsleepNS.Round(time.Millisecond), r.Sleeps, r.KeptAwakeNS.Round(time.Millisecond), wakesText(r.Wakes))
	},
}

// wakesText is a histogram as one line: "32us: 4, 64us: 117".
func wakesText(wakes []api.WakeCount) string {
	var all []string
	for _, b := range wakes {
		all = append(all, fmt.Sprintf("%dus: %d", b.BelowUS, b.Count))
	}
	if all == nil {
		return "-"
	}
	return strings.Join(all, ", ")
}

func upOrDown(up bool) string {
	if up {
		return "up"
	}
	return "down"
}

var tableTable = objectTable[api.Table]{
	"TABLE\tNAME\tENTRIES\tLEARNED\tMASKS\tLOOKUPS\tMATCHED\tDROPPED\tNS/LOOKUP\tNS/ACTIONS\tSHAPE",
	func(r *api.Table) []string {
		var dropped uint64
		for _, n := range r.Drops {
			dropped += n
		}
		return oneLine("%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s",
			r.ID, r.Name, r.Entries, r.Learned, r.Masks, r.Lookups, r.Matched, dropped, meanText(r.LookupNS), meanText(r.ActionsNS), r.Shape)
	},
}

// meanText is a mean time in nanoseconds, "-" if nothing was timed.
func meanText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return strconv.FormatInt(d.Nanoseconds(), 10)
}

func (p *Answers) writeFDB(w io.Writer, _ query) error {
	fmt.Fprintln(w, " port  VLAN  MAC                Age")
	for _, m := range p.macRecords() {
		fmt.Fprintf(w, "%5d  %4d  %s  %3d\n", m.Port, m.VLAN, m.MAC, int(m.AgeNS.Seconds()))
	}
	for _, r := range p.PortRecords() {
		for _, reason := range slices.Sorted(maps.Keys(r.MACs.NotLearned)) {
			fmt.Fprintf(w, "port %d: source MAC not learned, %s: %d\n", r.No, reason, r.MACs.NotLearned[reason])
		}
	}
	return nil
}

var dropTable = objectTable[api.Drop]{"TABLE\tREASON\tPACKETS\tMEANING", func(d *api.Drop) []string {
	return oneLine("%s\t%s\t%d\t%s", d.Table, d.Reason, d.Packets, d.Meaning)
}}

func (p *Answers) writeCookies(w io.Writer, _ query) error {
	all, err := p.Cookies()
	for _, c := range all {
		fmt.Fprintf(w, "%s, n_entries=%d, n_packets=%d, n_bytes=%d\n", c.Object, c.Entries, c.Packets, c.Bytes)
	}
	return err
}

// Selection of a dump's entries: by a filter, as in ovs-ofctl, and by the objects that ask for
// them.

// policyKinds are the kinds that policy= may name, in this order.
var policyKinds = []cluster.Kind{cluster.KindNetworkPolicy, cluster.KindAntreaNetworkPolicy, cluster.KindClusterNetworkPolicy}

// objectParameters are the parameters that name objects.
var objectParameters = map[string][]cluster.Kind{"pod": {cluster.KindPod}, "service": {cluster.KindService}, "policy": policyKinds}

// requestedObjects are the objects that a request names, by parameter.
func requestedObjects(v url.Values) map[string]string {
	all := map[string]string{}
	for name := range objectParameters {
		if v.Has(name) {
			all[name] = v.Get(name)
		}
	}
	return all
}

// chosen selects the entries that match the query's filter, and that the named objects ask for.
func (p *Answers) chosen(all []telemetry.FlowStats, q query) ([]telemetry.FlowStats, error) {
	if q.filter != "" {
		f, err := parse.Filter(q.filter, p.Switch.Names())
		if err != nil {
			return nil, fmt.Errorf("filter %q: %w", q.filter, err)
		}
		all = slices.DeleteFunc(all, func(e telemetry.FlowStats) bool { return !f.Takes(e.Entry) })
	}
	for parameter, name := range q.objects {
		keys, err := p.keysNamed(parameter, name)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(e telemetry.FlowStats) bool { return !p.wantedBy(e.Entry, keys) })
	}
	return all, nil
}

// elsewhere returns an error if a Pod has no port in this switch: then no entry here is its
// own.
func (p *Answers) elsewhere(pod cluster.Key) error {
	at, err := p.Objects.PodPlace(cluster.Name{Namespace: pod.Namespace, Name: pod.Name})
	if err != nil || at.Port != 0 {
		return err
	}
	if self, err := p.Objects.Self(); err != nil || at.Node == self.Node {
		return fmt.Errorf("the Pod %s/%s has no port in this switch, so it has no entries", pod.Namespace, pod.Name)
	}
	return fmt.Errorf("the Pod %s/%s runs on Node %s: ask that Node's agent for its entries", pod.Namespace, pod.Name, at.Node)
}

// wantedBy says whether one of the objects asks for an entry.
func (p *Answers) wantedBy(e *flow.Entry, keys []cluster.Key) bool {
	return slices.ContainsFunc(p.Objects.OriginsOf(e), func(o ledger.Origin) bool { return slices.Contains(keys, o.Object) })
}

// keysNamed are the objects of a parameter's kinds with a name: NAMESPACE/NAME, or NAME for
// policies without namespace.
func (p *Answers) keysNamed(parameter, text string) (keys []cluster.Key, err error) {
	if p.Objects == nil {
		return nil, pipeline.ErrNoObjects
	}
	namespace, name, two := strings.Cut(text, "/")
	if !two {
		namespace, name = "", text
	}
	for _, kind := range objectParameters[parameter] {
		k := cluster.Key{Kind: kind, Namespace: namespace, Name: name}
		if p.Objects.Object(k) != nil {
			keys = append(keys, k)
		}
	}
	if keys != nil && parameter == "pod" {
		return keys, p.elsewhere(keys[0])
	}
	if keys == nil && !two && parameter != "policy" {
		return nil, fmt.Errorf("%s=%q is not NAMESPACE/NAME", parameter, text)
	}
	if keys == nil {
		return nil, fmt.Errorf("there is no %s %q; antrail get %s lists them", parameter, text, map[string]string{"pod": "pods", "service": "services", "policy": "policies"}[parameter])
	}
	return keys, nil
}
