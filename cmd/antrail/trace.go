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
		Long: `Walk one packet through the tables and print the entry hit in each, its actions and their changes, the
answers of conntrack, and the verdict with the packet as it leaves. Nothing is sent, counted or learned;
connections are looked up as they are.

FLOW describes the packet as a match does: in_port, headers, registers, marks and tunnel fields. Fields that
it leaves out are as in the first packet of a connection: nw_ttl=64, tp_src=40000, tcp_flags=syn, an ICMP echo
request. A Pod's packet without its own dl_src and nw_src is dropped as forged; antrail why makes up a packet
from one Pod to another by itself.`,
		Example: "  antrail trace --node node-a " + examplePacket + "\n  antrail trace " + nodeFiles + " " + examplePacket,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case live.on && len(args) > 0:
				return fmt.Errorf("%q: --live watches real packets, and takes --filter, --source and others instead of FLOW", args[0])
			case live.on:
				return nil
			}
			return exactly("FLOW")(c, args)
		},
	}
	c.AddCommand(append(showCommands(), traceReplayCommand())...)
	from.addTo(c)
	c.Flags().StringVar(&req.Packet, "packet", "", "the frame in hexadecimal, instead of the headers in FLOW")
	c.Flags().StringArrayVar(&req.CTNext, "ct-next", nil, "answer of the next ct() action, such as trk,new; then trk,new (may be given several times)")
	c.Flags().BoolVar(&explain, "explain", false, "as a tree, with the object behind each entry")
	if hasSwitch {
		live.addTo(c)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if live.on {
			return live.watch(c)
		}
		if live.given(c) {
			return usageError{errors.New("flags of live traces need --live")}
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

// liveLong is the help of live traces.
const liveLong = `

With --live it watches real packets as they pass: those that meet all of --source, --destination, --port and --filter,
or all. They are forwarded as usual, but walk every table. Offloaded connections are restored while they are watched.
With several agents (--node or --socket, given again), the two walks of a packet between Nodes are shown as one. Walks
that there was no time to record are counted. The trace ends after --count walks, after --for, or on Ctrl-C.`

// liveOnly are the flags that need --live.
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
	f.StringVar(&l.record, "record", "", "also write walks to this file, for trace show, paths and replay")
	c.MarkFlagFilename("record")
	l.agents.addTo(c, l.from, "; with --live, may be given several times")
	f.Lookup("output").Usage += "; with --live " + strings.Join(trace.Forms(), ", ")
	for _, other := range []string{"flows", "manifests", "program", "packet", "ct-next", "explain"} {
		c.MarkFlagsMutuallyExclusive("live", other)
	}
}

// addWhichTo adds the flags that all commands for live packets have.
func (l *liveFlags) addWhichTo(c *cobra.Command) {
	f, r := c.Flags(), &l.request
	f.StringVar(&r.Filter, "filter", "", "packets that meet a tcpdump expression as they enter")
	f.BoolVar(&r.DroppedOnly, "dropped-only", false, "only dropped packets")
	f.IntVar(&r.Count, "count", 0, "end after so many packets")
	f.DurationVar(&r.For, "for", 0, "end after this time, such as 10m")
	f.IntVar(&r.Bytes, "bytes", 0, fmt.Sprintf("how many bytes of a packet to keep, at most %d; 0 is all of these in recordings, JSON and captures, otherwise %d", api.MostBytes, api.HeaderBytes))
	addWrite(c, &l.write)
}

// setBytes sets how many bytes of packets walks have. Text needs only headers.
func (l *liveFlags) setBytes(form string) {
	whole := l.record != "" || form == trace.FormJSON || form == trace.FormPcapng
	if l.request.Bytes == 0 && whole {
		l.request.Bytes = api.MostBytes
	}
}

// given says whether a flag was given that needs --live.
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
		return usageError{errors.New("--count and --for must not be negative")}
	}
	agents, err := l.agents.clients(*l.from, io.Discard)
	if err != nil {
		return err
	}
	out, shut, err := formTo(c, form, l.write)
	if err != nil {
		return err
	}
	l.setBytes(form)
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

// recorded returns the function that prints each way, and writes it to the record's file if
// there is one. end closes the file.
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

// tellArmed says which packets are watched from now on.
func (l *liveFlags) tellArmed(w io.Writer, a *api.Armed) {
	what := "packets that enter by any port"
	switch {
	case a.InPort != 0:
		what = fmt.Sprintf("packets that enter by port %d", a.InPort)
	case a.Pod != "":
		what = "packets from or to Pod " + a.Pod + ""
	case a.Through != "":
		what = "packets that enter or leave by port " + a.Through
	}
	if len(a.Tables) > 0 {
		what += ", come to table " + strings.Join(a.Tables, " or ")
	}
	fmt.Fprintf(w, "watching %s: %s", cmp.Or(a.Node, "the agent"), what)
	for i, f := range a.Filter {
		fmt.Fprintf(w, "%s(%s)", map[bool]string{true: " and meet ", false: " and "}[i == 0], f)
	}
	fmt.Fprintln(w)
}
