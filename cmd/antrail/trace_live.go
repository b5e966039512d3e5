//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/trace"
	"github.com/spf13/cobra"
)

// liveFlags are the flags of live traces.
type liveFlags struct {
	from          *source
	on            bool
	request       agent.LiveTraceRequest
	agents        several
	record, write string // files
}

// liveOnly are those that make no sense without --live.
var liveOnly = []string{"source", "destination", "port", "filter", "dropped-only", "count", "for", "bytes", "record", "write"}

func (l *liveFlags) addTo(c *cobra.Command) {
	f, r := c.Flags(), &l.request
	f.BoolVar(&l.on, "live", false, "watch real packets")
	f.StringVarP(&r.Source, "source", "S", "", "packets from this Pod, as namespace/name: a Pod of the Node by its port, others by their addresses")
	f.StringVarP(&r.Destination, "destination", "D", "", "packets to this Pod, or through a Service to it, as namespace/name")
	f.Uint16Var(&r.Port, "port", 0, "packets from or to this port of TCP, UDP or SCTP, as they enter")
	l.addWhichTo(c)
	f.StringVar(&l.record, "record", "", "write walks to this file too, for trace show, paths and replay")
	c.MarkFlagFilename("record")
	l.agents.addTo(c, l.from, "; with --live, may be given several times")
	f.Lookup("output").Usage += "; with --live " + strings.Join(trace.Forms(), ", ")
	for _, other := range []string{"flows", "manifests", "packet", "ct-next", "explain"} {
		c.MarkFlagsMutuallyExclusive("live", other)
	}
}

// addWhichTo gives a command the flags that it has in common with others that watch.
func (l *liveFlags) addWhichTo(c *cobra.Command) {
	f, r := c.Flags(), &l.request
	f.StringVar(&r.Filter, "filter", "", "packets that meet a tcpdump expression as they enter")
	f.BoolVar(&r.DroppedOnly, "dropped-only", false, "only packets that go nowhere")
	f.IntVar(&r.Count, "count", 0, "end after so many packets")
	f.DurationVar(&r.For, "for", 0, "end after this time, such as 10m")
	f.IntVar(&r.Bytes, "bytes", 0, fmt.Sprintf("how many bytes of a packet to keep, at most %d; 0 is all of these in recordings, JSON and captures, and %d for a person", agent.MostBytes, agent.HeaderBytes))
	addWrite(c, &l.write)
}

// keep settles how many bytes of packets walks have: who reads headers does not wait for
// payload.
func (l *liveFlags) keep(form string) {
	whole := l.record != "" || form == trace.FormJSON || form == trace.FormPcapng
	if l.request.Bytes == 0 && whole {
		l.request.Bytes = agent.MostBytes
	}
}

// given says whether any flag was given that goes with --live.
func (l *liveFlags) given(c *cobra.Command) bool {
	return l.agents.given() || slices.ContainsFunc(liveOnly, func(name string) bool { return c.Flags().Changed(name) })
}

// watch prints walks until the trace ends.
func (l *liveFlags) watch(c *cobra.Command) error {
	form := l.from.output
	if form == "text" {
		form = trace.FormTree
	}
	if l.request.Count < 0 || l.request.For < 0 {
		return usageError{errors.New("--count and --for are not negative")}
	}
	agents, err := l.agents.clients(*l.from, io.Discard)
	if err != nil {
		return err
	}
	out, shut, err := formTo(c, form, l.write)
	if err != nil {
		return err
	}
	l.keep(form)
	l.request.Text = form == trace.FormOFProto || l.record != ""
	tell, end, err := l.recorded(out)
	if err != nil {
		return err
	}
	begun := false
	w := agent.Watch{Agents: agents, Request: l.request}
	w.Armed = func(a *agent.Armed) { begun = true; l.tellArmed(c.ErrOrStderr(), a) }
	w.Tell = func(way trace.Joined) error { begun = true; return tell(way) }
	start := time.Now()
	counts, err := w.Run(c.Context())
	if err != nil && !begun { // files are as they were
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%d packets matched in %v, %d not recorded\n", counts.Matched, time.Since(start).Round(100*time.Millisecond), counts.Lost)
	return errors.Join(err, out.End(), shut(), end())
}

// recorded is what gets each way, a file beside the printer if one was asked for,
// and what ends the file.
func (l *liveFlags) recorded(out trace.Printer) (tell func(trace.Joined) error, end func() error, err error) {
	if l.record == "" {
		return out.Print, func() error { return nil }, nil
	}
	f, err := openLate(l.record)
	if err != nil {
		return nil, nil, err
	}
	return func(way trace.Joined) error { return errors.Join(trace.WriteJSON(f, way), out.Print(way)) }, f.Close, nil
}

// tellArmed says what is watched from now on.
func (l *liveFlags) tellArmed(w io.Writer, a *agent.Armed) {
	what := "what enters by any port"
	switch {
	case a.InPort != 0:
		what = fmt.Sprintf("what enters by port %d", a.InPort)
	case a.Pod != "":
		what = "what comes from Pod " + a.Pod + " or goes to it"
	case a.Through != "":
		what = "what enters or leaves by port " + a.Through
	}
	if len(a.Tables) > 0 {
		what += ", comes to table " + strings.Join(a.Tables, " or ")
	}
	fmt.Fprintf(w, "watching %s: %s", cmp.Or(a.Node, "the agent"), what)
	for i, f := range a.Filter {
		fmt.Fprintf(w, "%s(%s)", map[bool]string{true: " and meets ", false: " and "}[i == 0], f)
	}
	fmt.Fprintln(w)
}
