package answer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/control/policy"
	"github.com/antrail/antrail/flow"
)

// The objects behind the pipeline, with their states and the counters of their entries. A
// pipeline of flow files has none.

// objectTable lists a family of objects: its columns, and the lines of an object, both
// separated by tabs.
type objectTable[Row any] struct {
	columns string
	lines   func(*Row) []string
}

// oneLine makes a single line.
func oneLine(format string, cells ...any) []string { return []string{fmt.Sprintf(format, cells...)} }

// counterColumns are columns that change as packets pass.
var counterColumns = []string{"SESSIONS", "PACKETS", "BYTES", "HITS", "EVENTS"}

// write prints rows as text.
func (o objectTable[Row]) write(w io.Writer, all []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, o.columns)
	for i := range all {
		for _, line := range o.lines(&all[i]) {
			fmt.Fprintln(t, line)
		}
	}
	return t.Flush()
}

// tableAnswer answers with records that are no objects: one for each row of a table.
func tableAnswer[Row any](records func(*Answers) []Row, table objectTable[Row]) answer {
	return answer{
		text:   func(p *Answers, w io.Writer, _ query) error { return table.write(w, records(p)) },
		values: always(records),
	}
}

// listAnswer answers for one family of objects. The last of tables is for wide output.
func listAnswer[Row any](rows func(*Answers, query) ([]Row, error), key func(*Row) cluster.Key, tables ...objectTable[Row]) answer {
	table := func(q query) objectTable[Row] {
		if q.wide {
			return tables[len(tables)-1]
		}
		return tables[0]
	}
	return answer{
		text: func(p *Answers, w io.Writer, q query) error {
			all, err := rows(p, q)
			if err != nil {
				return err
			}
			return table(q).write(w, all)
		},
		values: func(p *Answers, q query) (any, error) {
			all, err := rows(p, q)
			return append([]Row{}, all...), err // no rows are [] in JSON
		},
		table: func(p *Answers, q query) (*api.Listing, error) {
			all, err := rows(p, q)
			l := &api.Listing{Columns: columnsOf(table(q).columns), Items: []api.Item{}}
			for i := range all {
				k := key(&all[i])
				item := api.Item{Namespace: k.Namespace, Name: k.Name, Labels: p.labelsOf(k)}
				if k.Kind != "" {
					item.Object = k.String()
				}
				for _, line := range table(q).lines(&all[i]) {
					item.Lines = append(item.Lines, strings.Split(line, "\t"))
				}
				if err == nil {
					item.Record, err = plainJSON(all[i])
				}
				l.Items = append(l.Items, item)
			}
			return l, err
		},
	}
}

// statusRow is a row that embeds a control.Status.
type statusRow[Row any] interface {
	*Row
	Shown() *control.Status
}

// objectAnswer is listAnswer for objects of some kinds.
func objectAnswer[Row any, P statusRow[Row]](kinds func(cluster.Kind) bool, rows func(*Answers, query) []Row, tables ...objectTable[Row]) answer {
	return listAnswer(withRefused[Row, P](kinds, rows), func(r *Row) cluster.Key { return P(r).Shown().Object }, tables...)
}

// withRefused appends rows for the refused objects of some kinds.
func withRefused[Row any, P statusRow[Row]](kinds func(cluster.Kind) bool, rows func(*Answers, query) []Row) func(*Answers, query) ([]Row, error) {
	return func(p *Answers, q query) ([]Row, error) {
		if p.Objects == nil {
			return nil, pipeline.ErrNoObjects
		}
		all := rows(p, q)
		for _, s := range p.RefusedObjects(kinds) {
			var row Row
			*P(&row).Shown() = s
			all = append(all, row)
		}
		return all, nil
	}
}

// plainJSON encodes a value as JSON that leaves <, > and & as they are.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// columnsOf are the columns of a heading with tabs.
func columnsOf(heading string) (all []api.Column) {
	for _, name := range strings.Split(heading, "\t") {
		all = append(all, api.Column{Name: name, Counter: slices.Contains(counterColumns, name)})
	}
	return all
}

// labelsOf are the labels of an object; nil for an unknown object.
func (p *Answers) labelsOf(k cluster.Key) map[string]string {
	if p.Objects == nil || k.Kind == "" {
		return nil
	}
	o := p.Objects.Object(k)
	if o == nil {
		return nil
	}
	return o.Metadata().Labels
}

// podRows are the Pods of the Node, with the faults of their links.
func (p *Answers) podRows(query) []control.PodRow {
	all := p.Objects.Pods(p.counter())
	for i := range all {
		if f, broken := p.LinkFault(all[i].OFPort); broken {
			all[i].Link = f.What
		}
	}
	return all
}

// serviceRows include endpoints only for wide output, because counting these takes time.
func (p *Answers) serviceRows(q query) []control.ServiceRow {
	all := p.Objects.Services(p.counter())
	if !q.wide {
		return all
	}
	of := map[cluster.Key][]control.EndpointRow{}
	for _, e := range p.Objects.Endpoints(p.bucketCounter()) {
		of[e.Service] = append(of[e.Service], e)
	}
	for i := range all {
		all[i].Backends = of[all[i].Object]
	}
	return all
}

// endpointRows are the Services that have endpoints.
func (p *Answers) endpointRows(query) (all []api.EndpointsRecord, err error) {
	if p.Objects == nil {
		return nil, pipeline.ErrNoObjects
	}
	for _, e := range p.Objects.Endpoints(p.bucketCounter()) {
		if len(all) == 0 || all[len(all)-1].Service != e.Service {
			all = append(all, api.EndpointsRecord{Service: e.Service, Object: e.Service.String()})
		}
		last := &all[len(all)-1]
		last.Endpoints = append(last.Endpoints, e)
	}
	return all, nil
}

// policyRows are the policies. A refused one has an empty list of rules in JSON.
func (p *Answers) policyRows(q query) ([]control.PolicyRow, error) {
	all, err := withRefused(isPolicy, func(p *Answers, _ query) []control.PolicyRow { return p.policies() })(p, q)
	for i := range all {
		if all[i].Rules == nil {
			all[i].Rules = []policy.RuleRow{}
		}
	}
	return all, err
}

// egressRows are the Egresses, with the drops of their meters.
func (p *Answers) egressRows(query) []control.EgressRow {
	all, dropped := p.Objects.Egresses(p.counter()), map[uint32]uint64{}
	for _, m := range p.Switch.Meters() {
		for _, n := range m.Dropped {
			dropped[m.ID] += n
		}
	}
	for i := range all {
		all[i].Dropped = dropped[all[i].Meter]
	}
	return all
}

func (p *Answers) trafficControlRows(query) []control.TrafficControlRow {
	return p.Objects.TrafficControls(p.counter())
}

func (p *Answers) traceflowRows(query) []control.TraceflowRow {
	of := p.TraceflowStatus
	if of == nil {
		of = func(t *cluster.Traceflow) cluster.TraceflowStatus { return t.Status }
	}
	return p.Objects.TraceflowRows(of)
}

// counter reads the counters of entries, each table once.
func (p *Answers) counter() policy.Counter {
	type counts struct{ packets, bytes uint64 }
	tables := map[uint8]map[flow.Identity]counts{} // tables that were read
	return func(e *flow.Entry) (packets, bytes uint64) {
		all, known := tables[e.Table]
		if !known {
			all = map[flow.Identity]counts{}
			for _, f := range p.Switch.FlowsIn(e.Table) {
				all[f.Identity()] = counts{f.Packets, f.Bytes}
			}
			tables[e.Table] = all
		}
		c := all[e.Identity()]
		return c.packets, c.bytes
	}
}

// bucketCounter reads the counters of groups' buckets.
func (p *Answers) bucketCounter() control.BucketCounter {
	all := map[uint32][]control.BucketCount{}
	for _, g := range p.Switch.Groups() {
		for i, b := range g.Buckets {
			all[g.ID] = append(all[g.ID], control.BucketCount{Bucket: &g.Group.Buckets[i], Packets: b.Packets, Bytes: b.Bytes})
		}
	}
	return func(group uint32) []control.BucketCount { return all[group] }
}

// The columns of objects.

var serviceTable = objectTable[control.ServiceRow]{
	"NAMESPACE\tNAME\tTYPE\tADDRESSES\tENDPOINTS\tLOCAL\tGROUPS\tPACKETS\tBYTES\tENTRIES\tSTATE",
	func(r *control.ServiceRow) []string {
		groups := strings.Trim(fmt.Sprint(r.GroupIDs), "[]")
		return oneLine("%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%s", r.Object.Namespace, r.Object.Name, r.Type,
			list(r.Addresses), r.Endpoints, r.Local, orDash(groups), r.Packets, r.Bytes, r.Entries, pipeline.State(r.Status))
	},
}

// serviceWide has a line for each endpoint, and one for a Service without any.
var serviceWide = objectTable[control.ServiceRow]{
	"NAMESPACE\tNAME\tTYPE\tADDRESSES\tENDPOINT\tNODE\tPOD\tWEIGHT\tHITS\tSTATE",
	func(r *control.ServiceRow) (lines []string) {
		service := fmt.Sprintf("%s\t%s\t%s\t%s", r.Object.Namespace, r.Object.Name, r.Type, list(r.Addresses))
		for _, e := range r.Backends {
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d\t%s", service, e.Address, orDash(e.Node), orDash(e.Pod), e.Weight, e.Hits, e.State))
		}
		if lines == nil {
			lines = oneLine("%s\t-\t-\t-\t0\t0\t%s", service, pipeline.State(r.Status))
		}
		return lines
	},
}

var endpointsTable = objectTable[api.EndpointsRecord]{
	"NAMESPACE\tSERVICE\tPORT\tENDPOINT\tNODE\tPOD\tGROUPS\tWEIGHT\tHITS\tBYTES\tSTATE",
	func(r *api.EndpointsRecord) (lines []string) {
		for _, e := range r.Endpoints {
			groups := strings.Trim(fmt.Sprint(e.GroupIDs), "[]")
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s", r.Service.Namespace, r.Service.Name, e.Port,
				e.Address, orDash(e.Node), orDash(e.Pod), orDash(groups), e.Weight, e.Hits, e.Bytes, e.State))
		}
		return lines
	},
}

var podTable = objectTable[control.PodRow]{
	"NAMESPACE\tNAME\tIPS\tPORT\tOFPORT\tISOLATED\tPACKETS\tBYTES\tENTRIES\tSTATE",
	func(r *control.PodRow) []string {
		return oneLine("%s\t%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s", r.Object.Namespace, r.Object.Name,
			words(r.IPs), orDash(r.Port), r.OFPort, list(r.Isolated), r.Packets, r.Bytes, r.Entries, podState(r))
	},
}

var policyTable = objectTable[control.PolicyRow]{
	"KIND\tNAMESPACE\tNAME\tTIER\tPRIORITY\tRULES\tSESSIONS\tPACKETS\tBYTES\tENTRIES\tSTATE",
	func(r *control.PolicyRow) []string {
		priority := "-"
		if r.Tier != "" {
			priority = fmt.Sprint(r.Priority)
		}
		return oneLine("%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s", r.Object.Kind, orDash(r.Object.Namespace), r.Object.Name,
			orDash(r.Tier), priority, len(r.Rules), r.Sessions, r.Packets, r.Bytes, r.Entries, pipeline.State(r.Status))
	},
}

// ruleTable has a line for each rule of each policy, and one for a policy without rules on this
// Node.
var ruleTable = objectTable[control.PolicyRow]{
	"KIND\tNAMESPACE\tNAME\tDIRECTION\tRULE\tACTION\tPRIORITY\tSESSIONS\tPACKETS\tBYTES\tSTATE\tREFUSED EDIT",
	func(r *control.PolicyRow) (lines []string) {
		policy := fmt.Sprintf("%s\t%s\t%s", r.Object.Kind, orDash(r.Object.Namespace), r.Object.Name)
		if len(r.Rules) == 0 {
			return oneLine("%s\t-\t-\t-\t-\t-\t0\t0\t0\t%s\t%s", policy, pipeline.StateInForce(r.Status), orDash(r.EditRefused))
		}
		for _, rule := range r.Rules {
			priority := "-"
			if rule.Priority != 0 {
				priority = fmt.Sprint(rule.Priority)
			}
			lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s", policy, rule.Direction, rule.Name, rule.Action,
				priority, rule.Sessions, rule.Packets, rule.Bytes, rule.State, orDash(r.EditRefused)))
		}
		return lines
	},
}

var egressTable = objectTable[control.EgressRow]{
	"NAME\tEGRESSIP\tNODE\tPODS\tBANDWIDTH\tDROPPED\tPACKETS\tBYTES\tENTRIES\tSTATE",
	func(r *control.EgressRow) []string {
		ip := "-"
		if r.Addr.IsValid() {
			ip = r.Addr.String()
		}
		return oneLine("%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%s", r.Object.Name, ip, orDash(r.Node), r.Pods,
			orDash(r.Bandwidth.String()), r.Dropped, r.Packets, r.Bytes, r.Entries, pipeline.State(r.Status))
	},
}

var trafficControlTable = objectTable[control.TrafficControlRow]{
	"NAME\tACTION\tDIRECTION\tTARGET\tRETURN\tPODS\tPACKETS\tBYTES\tENTRIES\tSTATE",
	func(r *control.TrafficControlRow) []string {
		return oneLine("%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s", r.Object.Name, r.Action, r.Direction,
			r.Target, orDash(r.Return), r.Pods, r.Packets, r.Bytes, r.Entries, pipeline.State(r.Status))
	},
}

var traceflowTable = objectTable[control.TraceflowRow]{
	"NAME\tSOURCE\tDESTINATION\tPHASE\tEND\tREASON",
	func(r *control.TraceflowRow) []string {
		return oneLine("%s\t%s\t%s\t%s\t%s\t%s", r.Object.Name, orDash(r.Source), orDash(r.Destination), traceflowPhase(r),
			orDash(r.Trace.End()), orDash(r.Trace.Reason))
	},
}

// traceflowWide has a line for each observation.
var traceflowWide = objectTable[control.TraceflowRow]{
	"NAME\tPHASE\tNODE\tCOMPONENT\tTABLE\tACTION\tMORE",
	func(r *control.TraceflowRow) (lines []string) {
		for _, n := range r.Trace.Results {
			for i := range n.Observations {
				o := &n.Observations[i]
				lines = append(lines, oneLine("%s\t%s\t%s\t%s\t%s\t%s\t%s", r.Object.Name, traceflowPhase(r), n.Node, o.Component,
					orDash(o.ComponentInfo), o.Action, orDash(o.More()))...)
			}
		}
		if lines == nil {
			return oneLine("%s\t%s\t-\t-\t-\t-\t%s", r.Object.Name, traceflowPhase(r), orDash(r.Trace.Reason))
		}
		return lines
	},
}

// traceflowPhase is the phase, or the reason of a refused object.
func traceflowPhase(r *control.TraceflowRow) string {
	if r.State == ledger.Refused {
		return pipeline.State(r.Status)
	}
	return orDash(string(r.Trace.Phase))
}

// podState is the Pod's state, with the fault of its link.
func podState(r *control.PodRow) string {
	if r.Link == "" {
		return pipeline.State(r.Status)
	}
	return pipeline.State(r.Status) + ", " + r.Link
}

func list(words []string) string { return orDash(strings.Join(slices.Compact(words), ",")) }

func orDash(s string) string { return cmp.Or(s, "-") }
