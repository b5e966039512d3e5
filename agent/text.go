package agent

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/antrail/antrail/dataplane"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// The answers as text. Where Open vSwitch has a tool for it, the text is that
// tool's, header line included, so that the two can be compared:
// ovs-ofctl -O OpenFlow15 dump-flows, dump-groups, dump-meters, dump-ports;
// ovs-appctl dpctl/dump-conntrack, fdb/show.

// names are the pipeline's names if they are asked for.
func (p *pipeline) names(q query) *flow.Names {
	if q.names {
		return p.sw.Names()
	}
	return nil
}

// flows are the entries of the table asked for, or of all.
func (p *pipeline) flows(q query) ([]dataplane.FlowStats, error) {
	all := p.sw.Flows()
	if q.table != "" {
		id, err := p.tableID(q.table)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(f dataplane.FlowStats) bool { return f.Table != id })
	}
	if names := p.names(q); q.sorted {
		slices.SortStableFunc(all, func(a, b dataplane.FlowStats) int {
			if a.Table != b.Table || a.Priority != b.Priority {
				return 0 // they come by table and priority
			}
			return strings.Compare(a.Match.Text(names), b.Match.Text(names))
		})
	}
	if q.limit > 0 {
		all = all[:min(len(all), q.limit)]
	}
	return all, nil
}

// tableNames are those of all tables.
func (p *pipeline) tableNames() (all []string) {
	for _, t := range p.sw.Tables() {
		all = append(all, p.tableName(t.ID))
	}
	return all
}

// tableID is the number of a table given by name or number.
func (p *pipeline) tableID(table string) (uint8, error) {
	if id, ok := p.sw.Names().TableID(table); ok {
		return id, nil
	}
	id, err := strconv.ParseUint(table, 0, 8)
	if err != nil || !slices.ContainsFunc(p.sw.Tables(), func(t dataplane.TableStats) bool { return t.ID == uint8(id) }) {
		return 0, fmt.Errorf("there is no table %q%s; antrail dump-tables has them", table, flow.Suggest(table, p.tableNames()))
	}
	return uint8(id), nil
}

func (p *pipeline) writeFlows(w io.Writer, q query) error {
	all, err := p.flows(q)
	if err != nil {
		return err
	}
	if q.stats {
		fmt.Fprintln(w, "OFPST_FLOW reply (OF1.5) (xid=0x2):")
	}
	var line []byte
	for _, e := range all {
		f := flow.Format{Names: p.names(q)}
		if q.stats {
			f.Stats = &flow.Stats{Packets: e.Packets, Bytes: e.Bytes, Duration: e.Duration, Idle: e.Idle}
		}
		line = append(e.AppendText(line[:0], f), '\n')
		w.Write(line)
		if q.explain {
			writeOrigins(w, p.entryOrigins(q, e.Entry))
			writeMarks(w, tables.MarkNames{Names: p.sw.Names()}, e.Entry)
		}
	}
	return nil
}

func (p *pipeline) flowRecords(q query) ([]Flow, error) {
	all, err := p.flows(q)
	if err != nil {
		return nil, err
	}
	records, names := []Flow{}, p.sw.Names()
	marks := tables.MarkNames{Names: names}
	for _, e := range all {
		r := Flow{
			Table: p.tableName(e.Table), TableID: e.Table, Priority: e.Priority, Learned: e.Learned,
			Match: e.Match.Text(names), Actions: flow.ActionsText(e.Actions, names),
			Packets: e.Packets, Bytes: e.Bytes, DurationNS: e.Duration, IdleNS: e.Idle,
			Asks: marks.Match(e.Table, &e.Match), Sets: marks.Sets(e.Table, e.Entry.Actions), Origins: p.entryOrigins(q, e.Entry),
		}
		if e.Cookie != 0 {
			r.Cookie = fmt.Sprintf("%#x", e.Cookie)
		}
		records = append(records, r)
	}
	return records, nil
}

func (p *pipeline) writeGroups(w io.Writer, q query) error {
	fmt.Fprintln(w, "OFPST_GROUP_DESC reply (OF1.5) (xid=0x2):")
	for _, g := range p.sw.Groups() {
		fmt.Fprintln(w, g.Text(p.names(q)))
		writeOrigins(w, p.groupOrigins(q, g.ID))
	}
	return nil
}

func (p *pipeline) writeMeters(w io.Writer, q query) error {
	fmt.Fprintln(w, "OFPST_METER_CONFIG reply (OF1.5) (xid=0x2):")
	for i, m := range p.sw.Meters() {
		if i > 0 {
			fmt.Fprintln(w) // ovs-ofctl prints an empty line between meters
		}
		fmt.Fprintln(w, m.Text())
		writeOrigins(w, p.meterOrigins(q, m.ID))
	}
	return nil
}

// writePorts prints each port's counters, and what carries it.
func (p *pipeline) writePorts(w io.Writer, q query) error {
	all, err := p.portsAsked(q)
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

func (p *pipeline) writeWorkers(w io.Writer, _ query) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WORKER\tPORTS\tLOAD\tPACKETS\tBATCHES\tWORKING\tSPINNING\tASLEEP\tSLEEPS\tKEPT AWAKE\tWOKEN WITHIN")
	for _, r := range p.workerRecords() {
		fmt.Fprintf(t, "%d\t%d\t%.1f %%\t%d\t%d\t%v\t%v\t%v\t%d\t%v\t%s\n", r.No, len(r.OFPorts), 100*r.Load, r.Packets, r.Batches,
			r.WorkingNS.Round(time.Millisecond), r.SpinningNS.Round(time.Millisecond), r.AsleepNS.Round(time.Millisecond), r.Sleeps, r.KeptAwakeNS.Round(time.Millisecond), wakesText(r.Wakes))
	}
	return t.Flush()
}

// wakesText is a histogram in one line: "32us: 4, 64us: 117".
func wakesText(wakes []WakeCount) string {
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

func (p *pipeline) writeTables(w io.Writer, _ query) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TABLE\tNAME\tENTRIES\tLEARNED\tMASKS\tLOOKUPS\tMATCHED\tDROPPED\tNS/LOOKUP\tNS/ACTIONS\tSHAPE")
	for _, r := range p.tableRecords() {
		var dropped uint64
		for _, n := range r.Drops {
			dropped += n
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n",
			r.ID, r.Name, r.Entries, r.Learned, r.Masks, r.Lookups, r.Matched, dropped, meanText(r.LookupNS), meanText(r.ActionsNS), r.Shape)
	}
	return t.Flush()
}

// meanText is a mean time in nanoseconds, "-" while nothing was timed.
func meanText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return strconv.FormatInt(d.Nanoseconds(), 10)
}

func (p *pipeline) writeFDB(w io.Writer, _ query) error {
	fmt.Fprintln(w, " port  VLAN  MAC                Age")
	for _, m := range p.macRecords() {
		fmt.Fprintf(w, "%5d  %4d  %s  %3d\n", m.Port, m.VLAN, m.MAC, int(m.AgeNS.Seconds()))
	}
	for _, r := range p.portRecords() {
		for _, reason := range slices.Sorted(maps.Keys(r.MACs.NotLearned)) {
			fmt.Fprintf(w, "port %d: source MAC not learned, %s: %d\n", r.No, reason, r.MACs.NotLearned[reason])
		}
	}
	return nil
}

func (p *pipeline) writeDrops(w io.Writer, _ query) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TABLE\tREASON\tPACKETS\tMEANING")
	for _, d := range p.dropRecords() {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", d.Table, d.Reason, d.Packets, d.Meaning)
	}
	return t.Flush()
}
