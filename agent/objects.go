package agent

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/flow"
)

// The objects behind the pipeline, with how far each has come and what its
// entries counted. A pipeline of flow files has none.

var errNoObjects = errors.New("the pipeline comes from flow files: there are no objects behind it")

// ServiceRecord is a Service, by its key as text; so are the others.
type ServiceRecord struct {
	Object string `json:"object"`
	control.ServiceRow
}

// PodRecord is a Pod of the Node.
type PodRecord struct {
	Object string `json:"object"`
	control.PodRow
}

// PolicyRecord is a policy.
type PolicyRecord struct {
	Object string `json:"object"`
	control.PolicyRow
}

// EgressRecord is an Egress.
type EgressRecord struct {
	Object string `json:"object"`
	control.EgressRow
}

// TrafficControlRecord is a TrafficControl.
type TrafficControlRecord struct {
	Object string `json:"object"`
	control.TrafficControlRow
}

// objectAnswer answers for one family of objects.
func objectAnswer[Row, Record any](
	rows func(*pipeline) []Row, record func(Row) Record, table func(io.Writer, []Row),
) answer {
	return answer{
		text: func(p *pipeline, w io.Writer, _ query) error {
			if p.objects == nil {
				return errNoObjects
			}
			t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			table(t, rows(p))
			return t.Flush()
		},
		values: func(p *pipeline, _ query) (any, error) {
			if p.objects == nil {
				return nil, errNoObjects
			}
			records := []Record{}
			for _, r := range rows(p) {
				records = append(records, record(r))
			}
			return records, nil
		},
	}
}

// withRefused adds rows for the refused objects of some kinds behind those of rows.
func withRefused[Row any](rows func(*pipeline) []Row, of func(control.Kind) bool, refused func(control.Status) Row) func(*pipeline) []Row {
	return func(p *pipeline) []Row {
		all := rows(p)
		for _, s := range p.refusedObjects(of) {
			all = append(all, refused(s))
		}
		return all
	}
}

// podRows are the Pods of the Node, with the faults of their links.
func (p *pipeline) podRows() []control.PodRow {
	all := p.objects.Pods(p.counter())
	for i := range all {
		if f, broken := p.linkFault(all[i].OFPort); broken {
			all[i].Link = f.what
		}
	}
	return all
}

func (p *pipeline) serviceRows() []control.ServiceRow { return p.objects.Services(p.counter()) }
func (p *pipeline) egressRows() []control.EgressRow   { return p.objects.Egresses(p.counter()) }
func (p *pipeline) trafficControlRows() []control.TrafficControlRow {
	return p.objects.TrafficControls(p.counter())
}

// wide is an answer with another table for those who ask for a wide one.
func (a answer) wide(table answer) answer {
	narrow := a.text
	a.text = func(p *pipeline, w io.Writer, q query) error {
		if q.wide {
			return table.text(p, w, q)
		}
		return narrow(p, w, q)
	}
	return a
}

func serviceRecord(r control.ServiceRow) ServiceRecord { return ServiceRecord{r.Object.String(), r} }
func podRecord(r control.PodRow) PodRecord             { return PodRecord{r.Object.String(), r} }
func policyRecord(r control.PolicyRow) PolicyRecord    { return PolicyRecord{r.Object.String(), r} }
func egressRecord(r control.EgressRow) EgressRecord    { return EgressRecord{r.Object.String(), r} }
func trafficControlRecord(r control.TrafficControlRow) TrafficControlRecord {
	return TrafficControlRecord{r.Object.String(), r}
}

// counter tells what the switch has counted for entries so far.
func (p *pipeline) counter() control.Counter {
	type counts struct{ packets, bytes uint64 }
	tables := map[uint8]map[flow.Identity]counts{} // those that were asked for
	return func(e *flow.Entry) (packets, bytes uint64) {
		all, known := tables[e.Table]
		if !known {
			all = map[flow.Identity]counts{}
			for _, f := range p.sw.FlowsIn(e.Table) {
				all[f.Identity()] = counts{f.Packets, f.Bytes}
			}
			tables[e.Table] = all
		}
		c := all[e.Identity()]
		return c.packets, c.bytes
	}
}

func writeServices(w io.Writer, rows []control.ServiceRow) {
	fmt.Fprintln(w, "NAMESPACE\tNAME\tTYPE\tADDRESSES\tENDPOINTS\tLOCAL\tGROUPS\tPACKETS\tBYTES\tENTRIES\tSTATE")
	for _, r := range rows {
		groups := strings.Trim(fmt.Sprint(r.GroupIDs), "[]")
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%s\n", r.Object.Namespace, r.Object.Name, r.Type,
			list(r.Addresses, ","), r.Endpoints, r.Local, orDash(groups), r.Packets, r.Bytes, r.Entries, state(r.Status))
	}
}

func writePods(w io.Writer, rows []control.PodRow) {
	fmt.Fprintln(w, "NAMESPACE\tNAME\tIPS\tPORT\tOFPORT\tISOLATED\tPACKETS\tBYTES\tENTRIES\tSTATE")
	for _, r := range rows {
		var ips []string
		for _, ip := range r.IPs {
			ips = append(ips, ip.String())
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%s\n", r.Object.Namespace, r.Object.Name,
			list(ips, ","), orDash(r.Port), r.OFPort, list(r.Isolated, ","), r.Packets, r.Bytes, r.Entries, podState(&r))
	}
}

func writePolicies(w io.Writer, rows []control.PolicyRow) {
	fmt.Fprintln(w, "KIND\tNAMESPACE\tNAME\tTIER\tPRIORITY\tRULES\tSESSIONS\tPACKETS\tBYTES\tENTRIES\tSTATE")
	for _, r := range rows {
		priority := "-"
		if r.Tier != "" {
			priority = fmt.Sprint(r.Priority)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Object.Kind, orDash(r.Object.Namespace), r.Object.Name,
			orDash(r.Tier), priority, len(r.Rules), r.Sessions, r.Packets, r.Bytes, r.Entries, state(r.Status))
	}
}

// writeRules is a line for each rule of each policy, and one for a policy that
// has none here.
func writeRules(w io.Writer, rows []control.PolicyRow) {
	fmt.Fprintln(w, "KIND\tNAMESPACE\tNAME\tDIRECTION\tRULE\tACTION\tPRIORITY\tSESSIONS\tPACKETS\tBYTES\tSTATE\tREFUSED EDIT")
	for _, r := range rows {
		policy := fmt.Sprintf("%s\t%s\t%s", r.Object.Kind, orDash(r.Object.Namespace), r.Object.Name)
		if len(r.Rules) == 0 {
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t0\t0\t0\t%s\t%s\n", policy, stateInForce(r.Status), orDash(r.EditRefused))
		}
		for _, rule := range r.Rules {
			priority := "-"
			if rule.Priority != 0 {
				priority = fmt.Sprint(rule.Priority)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", policy, rule.Direction, rule.Name, rule.Action,
				priority, rule.Sessions, rule.Packets, rule.Bytes, rule.State, orDash(r.EditRefused))
		}
	}
}

func writeEgresses(w io.Writer, rows []control.EgressRow) {
	fmt.Fprintln(w, "NAME\tEGRESSIP\tNODE\tPODS\tPACKETS\tBYTES\tENTRIES\tSTATE")
	for _, r := range rows {
		ip := "-"
		if r.Addr.IsValid() {
			ip = r.Addr.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", r.Object.Name, ip, orDash(r.Node), r.Pods, r.Packets, r.Bytes, r.Entries, state(r.Status))
	}
}

func writeTrafficControls(w io.Writer, rows []control.TrafficControlRow) {
	fmt.Fprintln(w, "NAME\tACTION\tDIRECTION\tTARGET\tRETURN\tPODS\tPACKETS\tBYTES\tENTRIES\tSTATE")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\n", r.Object.Name, r.Action, r.Direction,
			r.Target, orDash(r.Return), r.Pods, r.Packets, r.Bytes, r.Entries, state(r.Status))
	}
}

// state is how far an object has come, why not further, and why an edit of it is refused.
func state(s control.Status) string {
	text := stateInForce(s)
	if s.EditRefused != "" {
		text += ", edit refused: " + s.EditRefused
	}
	return text
}

// stateInForce is state without the refused edit.
func stateInForce(s control.Status) string {
	switch {
	case s.Reason != "":
		return fmt.Sprintf("%s: %s", s.State, s.Reason)
	case s.State == "":
		return "-"
	}
	return string(s.State)
}

// podState is the Pod's state, with the fault of its link.
func podState(r *control.PodRow) string {
	if r.Link == "" {
		return state(r.Status)
	}
	return state(r.Status) + ", " + r.Link
}

func list(words []string, separator string) string {
	return orDash(strings.Join(slices.Compact(words), separator))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
