//go:build linux && !portable

package main

import (
	"github.com/antrail/antrail/trace"
	"github.com/spf13/cobra"
)

func captureCommand() *cobra.Command {
	from := source{output: trace.FormPcapng}
	live := liveFlags{from: &from}
	c := &cobra.Command{
		Use:   "capture -w FILE",
		Short: "Capture packets at ports and tables, for Wireshark",
		Long: `Capture real packets as they pass the switch, as pcapng: what tcpdump cannot tell is in it. A packet is there
where it entered, at each --table as it is when it comes there, and where it left, always with the same packet
id; each port is an interface named after its Pod. Comments tell the verdict and the entries of all tables that
the packet met, for a packet that is dropped too.

Captured are packets that enter or leave by --port, a port of the switch by name or number, or that come from
--pod or go to it, or all; of these the ones that meet --filter as they enter, and come to a --table.
A port needs all packets followed to know which leave there: with a --filter others pass untouched. Packets
are treated as they would have been. What there is no time to record is counted. The capture ends with --count
packets, after --for, or with Ctrl-C.`,
		Example: "  antrail capture --node node-a --pod default/client-a --count 20 --for 30s -w client-a.pcapng" +
			"\n  antrail capture --port antrea-tun0 --filter 'tcp port 80' --for 10s -w tunnel.pcapng" +
			"\n  antrail capture --table EgressRule --table Output --dropped-only --for 10s -w dropped.pcapng" +
			"\n  antrail capture --node node-a --node node-b --pod default/web-a -w - | wireshark -k -i -",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return live.watch(c) },
	}
	from.addSocketTo(c)
	live.agents.addTo(c, &from, "; may be given several times")
	f, r := c.Flags(), &live.request
	f.StringVar(&r.Through, "port", "", "packets that enter or leave by this port of the switch, by name or number")
	f.StringVar(&r.Pod, "pod", "", "packets from or to this Pod, as namespace/name, or through a Service to it")
	c.MarkFlagsMutuallyExclusive("port", "pod")
	f.StringArrayVar(&r.Tables, "table", nil, "packets that come to this table, as they are then; may be given several times")
	live.addWhichTo(c)
	return c
}
