//go:build linux

package main

import (
	"errors"
	"fmt"

	"github.com/antrail/antrail/agent"
	"github.com/spf13/cobra"
)

// examplePacket is a client that asks a Service.
const examplePacket = `'in_port="client-a",tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.26,nw_dst=10.105.31.235,tp_dst=80'`

func traceCommand() *cobra.Command {
	var from source
	var req agent.TraceRequest
	var explain bool
	live := liveFlags{from: &from}
	c := &cobra.Command{
		Use:   "trace FLOW | trace --live",
		Short: "Walk one packet through the tables, as ovs-appctl ofproto/trace does, or watch real ones",
		Long: `Walk one packet through the tables and print the entry hit in each, its actions and what they
changed, the answers of conntrack, and the verdict with the packet as it leaves. Nothing is sent,
counted or learned; connections are looked up as they are.

FLOW describes the packet as a match does: in_port, headers, and what it carries of registers, marks
and tunnel fields. What it leaves out is as in the first packet of a connection: nw_ttl=64, tp_src=40000,
tcp_flags=syn, an ICMP echo request. A Pod's packet without its own dl_src and nw_src is dropped as forged;
antrail why makes up a packet from one Pod to another by itself.

With --live real packets are watched as they pass: those that meet all of --source, --destination,
--port and --filter, or all. They are treated as they would have been, and walk every table for it;
connections that pass in the kernel come back while they are watched. With several agents (--node or
--socket, given again) a packet's walks on both Nodes are one. What there is no time to record is
counted. The trace ends with --count walks, after --for, or with Ctrl-C.`,
		Example: "  antrail trace --node node-a " + examplePacket + "\n  antrail trace " + nodeFiles + " " + examplePacket +
			"\n  antrail trace --live -S default/client-a -D default/web-b --node node-a --node node-b" +
			"\n  antrail trace --live --dropped-only --filter 'tcp port 80 and not host 10.10.0.1' --count 10" +
			"\n  antrail trace --live --node node-a -S default/client-a -o pcapng -w - | wireshark -k -i -",
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
	live.addTo(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if live.on {
			return live.watch(c)
		}
		if live.given(c) {
			return usageError{errors.New("flags of live traces go with --live")}
		}
		req.Flow = args[0]
		return from.print(c, func(client *agent.Client) ([]byte, error) {
			q := from.query()
			if explain {
				q.Set("explain", "1")
			}
			return client.Post(c.Context(), "/trace", q, &req)
		})
	}
	return c
}
