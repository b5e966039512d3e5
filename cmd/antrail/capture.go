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
		Long: `Capture real packets as they pass the switch, as pcapng, with facts that tcpdump cannot see. A packet is captured
where it entered, at each --table as it is there, and where it left, always with the same packet id. Each port is an
interface named after its Pod. Comments have the verdict and the entries of all tables that the packet met, also for
dropped packets.

The capture has packets that enter or leave by --port, a port of the switch by name or number, or that come from
--pod or go to it, or all. Of these, it has those that meet --filter as they enter, and come to a --table.
To know which packets leave by --port, the switch follows all packets; with --filter, only those that meet it.
Packets are forwarded as usual. Packets that there was no time to record are counted. The capture ends after --count
packets, after --for, or on Ctrl-C.`,
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
	f.StringArrayVar(&r.Tables, "table", nil, "packets that come to this table, as they are there; may be given several times")
	live.addWhichTo(c)
	return c
}
