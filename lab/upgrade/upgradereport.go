package upgrade

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is what the traffic noticed. Times are milliseconds.
type Report struct {
	Node        string  `json:"node"`
	Connections int     `json:"connections"`
	Rate        int     `json:"packetsPerSecond"`
	Events      []Event `json:"events"`
}

// Event is one thing that happened to the agent.
type Event struct {
	Name string `json:"name"`
	// Ready is how long the new agent took until it said so, from when it was
	// started; 0 when none was.
	Ready float64 `json:"readyMs,omitempty"`
	// Stopped is for how long the agents moved no packet, by their own account, when one
	// took over; 0 otherwise.
	Stopped float64 `json:"stoppedMs,omitempty"`
	// Lost is TCP connections that ended, or had no answer for a minute; Silent is the
	// latter. Slowest is how long the slowest answer took of those that are not lost.
	Lost    int     `json:"connectionsLost"`
	Silent  int     `json:"connectionsSilent"`
	Slowest float64 `json:"slowestMs"`
	// Why is how they were lost: how many in each manner, and one of each.
	Why   string `json:"why,omitempty"`
	Paths []Path `json:"paths"`
}

// Path is the UDP packets of one way.
type Path struct {
	From string `json:"from"`
	To   string `json:"to"`
	By   string `json:"by"`
	Sent int    `json:"sent"`
	Lost int    `json:"lost"`
	// Copies came twice.
	Copies int `json:"copies"`
	// Gap is the longest time in which none came, and Pause the longest in which
	// none was sent.
	Gap   float64 `json:"gapMs"`
	Pause float64 `json:"pauseMs"`
	// Wait is the longest that one which came was under way.
	Wait float64 `json:"waitMs"`
	// First is when the first one came that was sent since the new agent was
	// started, from then; 0 when none was started.
	First float64 `json:"firstMs,omitempty"`
}

// Lost is how many connections were lost in all.
func (r *Report) Lost() (n int) {
	for _, e := range r.Events {
		n += e.Lost
	}
	return n
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

const legend = `
SLOWEST: the longest that a heartbeat took over a connection that is not lost.
STOPPED: for how long no packet moved, by the account of the agents themselves.
GAP: the longest time in which no packet came; PAUSE: in which none was sent.
WAIT: the longest that a packet which came was under way.
READY and FIRST (packet that came) count from the start of the new agent.
`

// Write writes the report as a table.
func (r *Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d TCP connections, %d UDP packets a second\n\n", r.Node, r.Connections, r.Rate)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "EVENT\tCONNECTIONS LOST\tSLOWEST ms\tREADY ms\tSTOPPED ms\t")
	for _, e := range r.Events {
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%s\t%s\t", e.Name, e.Lost, e.Slowest, orNone(e.Ready), orNone(e.Stopped))
		if e.Why != "" {
			fmt.Fprint(t, "  ", e.Why)
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintln(t, "\t\t\t\t\t\nEVENT\tUDP PACKETS\tSENT\tLOST\tTWICE\tGAP ms\tPAUSE ms\tWAIT ms\tFIRST ms\t")
	for _, e := range r.Events {
		for _, p := range e.Paths {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%s\t\n", e.Name, p.By, p.Sent, p.Lost, p.Copies, p.Gap, p.Pause, p.Wait, orNone(p.First))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, legend)
	return err
}

// orNone is a time, or a dash when there is none.
func orNone(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", ms)
}
