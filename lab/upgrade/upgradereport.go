package upgrade

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Report has the effects on traffic. Times are in milliseconds.
type Report struct {
	Node        string  `json:"node"`
	Connections int     `json:"connections"`
	Rate        int     `json:"packetsPerSecond"`
	Events      []Event `json:"events"`
}

// Event is one event, and its effects.
type Event struct {
	Name string `json:"name"`
	// Ready is the time from the new agent's start until it is ready; 0 if none started.
	Ready float64 `json:"readyMs,omitempty"`
	// Stopped is how long no packet moved during a takeover, by the agents' own account; 0
	// otherwise.
	Stopped float64 `json:"stoppedMs,omitempty"`
	// Lost are TCP connections that ended, or had no answer for a minute. Silent are the
	// latter. Slowest is the longest time to an answer on a connection that is not lost.
	Lost    int     `json:"connectionsLost"`
	Silent  int     `json:"connectionsSilent"`
	Slowest float64 `json:"slowestMs"`
	// Why are the reasons of the losses: how many of each kind, and one of each.
	Why   string `json:"why,omitempty"`
	Paths []Path `json:"paths"`
}

// Path are the UDP packets of one path.
type Path struct {
	From string `json:"from"`
	To   string `json:"to"`
	By   string `json:"by"`
	Sent int    `json:"sent"`
	Lost int    `json:"lost"`
	// Copies arrived twice.
	Copies int `json:"copies"`
	// Gap is the longest time without an arrival, Pause the longest without a packet sent.
	Gap   float64 `json:"gapMs"`
	Pause float64 `json:"pauseMs"`
	// Wait is the longest time between sending and arrival.
	Wait float64 `json:"waitMs"`
	// First is the time from the new agent's start until the arrival of the first packet sent
	// after it; 0 if no agent started.
	First float64 `json:"firstMs,omitempty"`
}

// Lost is the number of lost connections, over all events.
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
SLOWEST: the longest time to a heartbeat's answer on a connection that is not lost.
STOPPED: how long no packet moved, by the agents' own account.
GAP: the longest time without an arrival; PAUSE: without a packet sent.
WAIT: the longest time from sending to arrival.
READY and FIRST (arrival) count from the start of the new agent.
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

// orNone is a time, or a dash for 0.
func orNone(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", ms)
}
