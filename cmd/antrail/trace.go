package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/trace"
	"github.com/spf13/cobra"
)

// examplePacket is a client that asks a Service.
const examplePacket = `'in_port="client-a",tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.26,nw_dst=10.105.31.235,tp_dst=80'`

func traceCommand() *cobra.Command {
	var from source
	var req api.TraceRequest
	var explain bool
	live := liveFlags{from: &from}
	c := &cobra.Command{
		Use:   "trace FLOW",
		Short: "Walk one packet through the tables, as ovs-appctl ofproto/trace does",
		Long: `Walk one packet through the tables and print the entry hit in each, its actions and what they
changed, the answers of conntrack, and the verdict with the packet as it leaves. Nothing is sent,
counted or learned; connections are looked up as they are.

FLOW describes the packet as a match does: in_port, headers, and what it carries of registers, marks
and tunnel fields. What it leaves out is as in the first packet of a connection: nw_ttl=64, tp_src=40000,
tcp_flags=syn, an ICMP echo request. A Pod's packet without its own dl_src and nw_src is dropped as forged;
antrail why makes up a packet from one Pod to another by itself.`,
		Example: "  antrail trace --node node-a " + examplePacket + "\n  antrail trace " + nodeFiles + " " + examplePacket,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case live.on && len(args) > 0:
				return fmt.Errorf("%q: --live watches real packets, and takes --filter, --source and so on in place of FLOW", args[0])
			case live.on:
				return nil
			}
			return exactly("FLOW")(c, args)
		},
	}
	c.AddCommand(append(showCommands(), traceReplayCommand())...)
	from.addTo(c)
	c.Flags().StringVar(&req.Packet, "packet", "", "the frame in hexadecimal, in place of the headers in FLOW")
	c.Flags().StringArrayVar(&req.CTNext, "ct-next", nil, "state that the next ct() action answers with, such as trk,new; then trk,new (may be given several times)")
	c.Flags().BoolVar(&explain, "explain", false, "as a tree, with the object behind each entry")
	if hasSwitch {
		live.addTo(c)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if live.on {
			return live.watch(c)
		}
		if live.given(c) {
			return usageError{errors.New("flags of live traces go with --live")}
		}
		req.Flow = args[0]
		return from.print(c, func(client *api.Client) ([]byte, error) {
			q := from.query()
			if explain {
				q.Set("explain", "1")
			}
			return client.Post(c.Context(), "/trace", q, &req)
		})
	}
	return c
}

// liveFlags are the flags of live traces.
type liveFlags struct {
	from          *source
	on            bool
	request       api.LiveTraceRequest
	agents        several
	record, write string // files
}

// liveLong is what the help says of live traces.
const liveLong = `

With --live real packets are watched as they pass: those that meet all of --source, --destination,
--port and --filter, or all. They are treated as they would have been, and walk every table for it;
connections that pass in the kernel come back while they are watched. With several agents (--node or
--socket, given again) the two walks of a packet between Nodes are shown as one. Walks that there is
no time to record are counted. The trace ends with --count walks, after --for, or with Ctrl-C.`

// liveOnly are those that make no sense without --live.
var liveOnly = []string{"source", "destination", "port", "filter", "dropped-only", "count", "for", "bytes", "record", "write"}

func (l *liveFlags) addTo(c *cobra.Command) {
	c.Use += " | trace --live"
	c.Short += ", or watch real ones"
	c.Long += liveLong
	c.Example += "\n  antrail trace --live -S default/client-a -D default/web-b --node node-a --node node-b" +
		"\n  antrail trace --live --dropped-only --filter 'tcp port 80 and not host 10.10.0.1' --count 10" +
		"\n  antrail trace --live --node node-a -S default/client-a -o pcapng -w - | wireshark -k -i -"
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
	for _, other := range []string{"flows", "manifests", "program", "packet", "ct-next", "explain"} {
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
	f.IntVar(&r.Bytes, "bytes", 0, fmt.Sprintf("how many bytes of a packet to keep, at most %d; 0 is all of these in recordings, JSON and captures, and %d for a person", api.MostBytes, api.HeaderBytes))
	addWrite(c, &l.write)
}

// keep settles how many bytes of packets walks have: who reads headers does not wait for
// payload.
func (l *liveFlags) keep(form string) {
	whole := l.record != "" || form == trace.FormJSON || form == trace.FormPcapng
	if l.request.Bytes == 0 && whole {
		l.request.Bytes = api.MostBytes
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
	w := api.Watch{Agents: agents, Request: l.request}
	w.Armed = func(a *api.Armed) { begun = true; l.tellArmed(c.ErrOrStderr(), a) }
	w.Tell = func(way trace.Joined) error { begun = true; return tell(way) }
	start := time.Now()
	counts, err := w.Run(c.Context())
	if err != nil && !begun { // files are as they were
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%d packets matched in %v, %d not recorded\n", counts.Matched, time.Since(start).Round(100*time.Millisecond), counts.Missed)
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
func (l *liveFlags) tellArmed(w io.Writer, a *api.Armed) {
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
