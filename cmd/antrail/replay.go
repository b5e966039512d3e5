package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/antrail/antrail/agent/answer"
	"github.com/spf13/cobra"
)

func replayCommand() *cobra.Command {
	var r answer.Replay
	var from offline
	var node string
	c := &cobra.Command{
		Use:   "replay IN.pcap",
		Short: "Run a capture through a pipeline, without ports or root",
		Long: `Run the packets of a capture (pcap or pcapng) through the pipeline of flow files, manifests or a program, on ports
in memory, and write the packets that leave to another capture. The clock follows the capture. A packet enters by
--in-port, or by the port whose address in the --ports file or the NodeConfig is its source.`,
		Example: "  antrail replay in.pcap -w out.pcap " + seedFiles,
		Args:    exactly("IN.pcap"),
	}
	from.addTo(c)
	c.Flags().StringVar(&node, "node", "", "the Node to look at, with --manifests")
	c.Flags().StringVarP(&r.Out, "write", "w", "", "capture file to write")
	c.Flags().StringVar(&r.InPort, "in-port", "", "port, by name or number, by which all packets enter")
	c.RunE = func(c *cobra.Command, args []string) error {
		var err error
		if r.From, err = from.source(node, c.ErrOrStderr()); err != nil {
			return err
		}
		if r.From == nil {
			return usageError{errors.New("one of --flows, --manifests and --program is needed")}
		}
		r.In, r.Tunnels = args[0], []string{from.tunnel}
		result, err := r.Run()
		if err != nil {
			return err
		}
		return printReplay(c.OutOrStdout(), result)
	}
	return c
}

func printReplay(w io.Writer, r *answer.ReplayResult) error {
	fmt.Fprintf(w, "%d packets read\n", r.Read)
	if r.Cut > 0 {
		fmt.Fprintf(w, "%d were captured only in part, and left out: capture with tcpdump -s 0\n", r.Cut)
	}
	if r.Unknown > 0 {
		fmt.Fprintf(w, "%d came from no port's address and were left out\n", r.Unknown)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Left)) {
		fmt.Fprintf(w, "%d left by %s\n", r.Left[name], name)
	}
	for _, d := range r.Drops {
		fmt.Fprintf(w, "%d dropped in %s: %s\n", d.Packets, d.Table, d.Meaning)
	}
	return nil
}
