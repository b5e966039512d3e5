package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report has the results of all attacks.
type Report struct {
	Tunnel   string `json:"tunnel"`
	Duration string `json:"duration"`
	Rows     []Row  `json:"attacks"`
}

// Row is the result of one attack by one address family.
type Row struct {
	Attack string `json:"attack"`
	Family string `json:"family"`
	Sent   int    `json:"sent"`
	// Arrived is how many of its packets other pods received; nil if any may.
	Arrived *int `json:"arrived,omitempty"`
	// Named are the drops that `antrail drops` reports.
	Named  []Named `json:"named,omitempty"`
	Others Others  `json:"others"`
	// MemoryBefore and MemoryAfter are the resident bytes of the agent.
	MemoryBefore int `json:"memoryBefore"`
	MemoryAfter  int `json:"memoryAfter"`
	// Plays is the number of plays: more than one if too many pings were lost.
	Plays int `json:"plays"`
	// Faults are the expectations that are not met; none if the attack had no effect.
	Faults []string `json:"faults,omitempty"`

	name *Named // the expected drop
	cut  int    // faults that are lost pings
	took time.Duration
}

// fault records a fault.
func (r *Row) fault(err error) {
	if err != nil {
		r.Faults = append(r.Faults, err.Error())
	}
}

// damaged records damage as a fault, and returns any other error.
func (r *Row) damaged(err error) error {
	var d damage
	if !errors.As(err, &d) {
		return err
	}
	r.fault(d)
	return nil
}

// count records how many packets arrived, and a fault if the number is wrong.
func (r *Row) count(a *attack, arrived int) {
	switch a.arrives {
	case anything:
		return
	case nothing:
		if arrived > 0 {
			r.fault(fmt.Errorf("%d copies of %d packets arrived at other pods, want 0", arrived, r.Sent))
		}
	case everything:
		if arrived != r.Sent {
			r.fault(fmt.Errorf("%d copies of %d packets arrived at other pods, want one of each", arrived, r.Sent))
		}
	}
	r.Arrived = &arrived
}

// check records every expectation that the row does not meet. Times depend on the machine,
// so they are not checked.
func (r *Row) check(a *attack) {
	if r.name = a.named(r.Named); r.name == nil && len(a.names) > 0 {
		r.fault(fmt.Errorf("antrail drops names no packet %s; it names %v", strings.Join(a.names, " or "), r.Named))
	}
	o := &r.Others
	if o.Failed > 0 {
		r.fault(fmt.Errorf("%d of %d connects of other pods failed: %s", o.Failed, o.Connects, o.Why))
	}
	for _, p := range []struct {
		where string
		Pings
	}{{"on one Node", o.OneNode}, {"across Nodes", o.Across}} {
		if p.Lost*2 > p.Sent {
			r.cut++
			r.fault(fmt.Errorf("%d of %d pings %s were lost, want half of them at most", p.Lost, p.Sent, p.where))
		}
	}
	if grown := r.MemoryAfter - r.MemoryBefore; grown > mostGrowth {
		r.fault(fmt.Errorf("the agent's memory grew by %d MB, want %d at most", grown>>20, mostGrowth>>20))
	}
	if r.MemoryAfter == 0 {
		r.fault(errors.New("the agent of " + nodeA + " has ended"))
	}
}

// onlyPings says whether lost pings are the only faults.
func (r *Row) onlyPings() bool { return r.cut > 0 && r.cut == len(r.Faults) }

// Failed is how many attacks had faults.
func (r *Report) Failed() (n int) {
	for i := range r.Rows {
		if len(r.Rows[i].Faults) > 0 {
			n++
		}
	}
	return n
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// legend explains the columns.
const legend = `
ARRIVED   packets of the attack at other pods; - if they are allowed
NAMED     one reason that antrail drops gives for them, and the port
ONE NODE, ACROSS   pings of other pods, on the attacker's Node and to the other: 99th percentile, and how many were lost
CONNECTS  failed TCP connects of other pods, and all of them
STREAMED  bytes that other pods received by TCP, and the longest pause
MEMORY    of the agent of the attacker's Node, before and after
`

// Write writes the report as a table.
func (r *Report) Write(w io.Writer) error {
	for _, family := range families {
		if slices.ContainsFunc(r.Rows, func(x Row) bool { return x.Family == family }) {
			if err := r.writeFamily(w, family); err != nil {
				return err
			}
		}
	}
	if _, err := fmt.Fprint(w, legend); err != nil {
		return err
	}
	for i := range r.Rows {
		for _, f := range r.Rows[i].Faults {
			if _, err := fmt.Fprintf(w, "\nFAIL  %s by %s: %s", r.Rows[i].Attack, r.Rows[i].Family, f); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(w, "\n%d of %d attacks came to nothing\n", len(r.Rows)-r.Failed(), len(r.Rows))
	return err
}

// writeFamily writes the table of one family.
func (r *Report) writeFamily(w io.Writer, family string) error {
	fmt.Fprintf(w, "\n%s in %s, %s each\n\n", family, r.Tunnel, r.Duration)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tATTACK\tSENT\tARRIVED\tNAMED\tONE NODE ms\tACROSS ms\tCONNECTS\tSTREAMED\tMEMORY MB")
	for i := range r.Rows {
		if x := &r.Rows[i]; x.Family == family {
			fmt.Fprintln(t, x.line())
		}
	}
	return t.Flush()
}

// line is the row's cells, with tabs between them.
func (r *Row) line() string {
	verdict, arrived, named := "PASS", "-", "-"
	if len(r.Faults) > 0 {
		verdict = "FAIL"
	}
	if r.Arrived != nil {
		arrived = fmt.Sprint(*r.Arrived)
	}
	switch {
	case r.name != nil:
		named = r.name.String()
	case len(r.Named) > 0:
		most := slices.MaxFunc(r.Named, func(a, b Named) int { return int(a.Packets) - int(b.Packets) })
		named = most.String()
	}
	o := &r.Others
	name := r.Attack
	if r.Plays > 1 {
		name += fmt.Sprintf(" (play %d)", r.Plays)
	}
	return strings.Join([]string{
		verdict, name, fmt.Sprint(r.Sent), arrived, named, o.OneNode.String(), o.Across.String(),
		fmt.Sprintf("%d of %d", o.Failed, o.Connects), fmt.Sprintf("%.1f MB, %.0f ms", float64(o.Streamed)/1e6, o.Stall),
		fmt.Sprintf("%d, %d", r.MemoryBefore>>20, r.MemoryAfter>>20),
	}, "\t")
}

// String is the percentile, and the losses if there are any.
func (p Pings) String() string {
	text := fmt.Sprintf("%.2f", p.P99)
	if p.Lost > 0 {
		text += fmt.Sprintf(", %d of %d lost", p.Lost, p.Sent)
	}
	return text
}

// progress writes the row as one line.
func (r *Row) progress(w io.Writer) {
	verdict := "PASS"
	if len(r.Faults) > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(w, "%s  %s  %-48s %7.3fs  %7d sent  %s\n", verdict, r.Family, r.Attack, r.took.Seconds(), r.Sent, strings.Join(r.Faults, "; "))
}
