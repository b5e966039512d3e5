package main

import (
	"errors"
	"strings"

	"github.com/antrail/antrail/bench"
	"github.com/spf13/cobra"
)

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "bench",
		Short:   "Measure the datapath against others, side by side",
		Example: "  antrail bench tcp\n  antrail bench afxdp\n  antrail bench conntrack",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(benchAFXDPCommand(), benchTCPCommand(), benchConntrackCommand())
	return c
}

func benchConntrackCommand() *cobra.Command {
	var o bench.ConntrackOptions
	var format string
	c := &cobra.Command{
		Use:   "conntrack",
		Short: "Connection tracking alone, antrail's and that of Open vSwitch",
		Long: `Measure connection tracking: known and new connections by the size of the table and with two workers, memory, sweep,
restart, and what refused connections cost; antrail's and, where it is installed, that of Open vSwitch's userspace
datapath, in turns. Progress goes to the standard error. Open vSwitch's side needs root.`,
		Example: "  antrail bench conntrack\n  antrail bench conntrack --rounds 5 -o markdown",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(o.Check(), bench.CheckFormat(format)); err != nil {
				return usageError{err}
			}
			result, err := bench.CompareConntrack(c.Context(), o, c.ErrOrStderr())
			if err != nil {
				return err
			}
			return result.Write(c.OutOrStdout(), format)
		},
	}
	c.Flags().StringVarP(&format, "output", "o", "text", strings.Join(bench.Formats, ", "))
	c.Flags().IntVar(&o.Rounds, "rounds", 0, "rounds of each side (default 3)")
	c.Flags().IntVar(&o.Entries, "entries", 0, "connections of a large table (default 1000000)")
	c.Flags().IntVar(&o.Packets, "packets", 0, "packets that a figure is taken from (default 200000)")
	return c
}

func benchTCPCommand() *cobra.Command {
	var o bench.TCPOptions
	c := &cobra.Command{
		Use:   "tcp",
		Short: "One TCP stream between two pods of a Node, by antrail and by a Linux bridge",
		Long: `Send one TCP stream between two pods of a Node in turns by a Linux bridge and by antrail's whole pipeline, with
the pods on packet sockets and on AF_XDP, and print minimum, median, maximum and the ratio of each round. It needs root.`,
		Example: "  antrail bench tcp\n  antrail bench tcp --rounds 3 --limit 1s",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return usageError{err}
			}
			return bench.CompareTCP(c.Context(), o, c.OutOrStdout())
		},
	}
	c.Flags().StringSliceVar(&o.Drivers, "drivers", nil, "of antrail's sides (default afpacket,afxdp)")
	c.Flags().IntVar(&o.Rounds, "rounds", 0, "runs of each side (default 5)")
	c.Flags().DurationVar(&o.Limit, "limit", 0, "time of a run (default 2s)")
	return c
}

func benchAFXDPCommand() *cobra.Command {
	var o bench.Options
	c := &cobra.Command{
		Use:   "afxdp",
		Short: "Forward between two veths, with our AF_XDP ports and with a library",
		Long: `Forward frames between two veths in network namespaces, in turns with antrail's own AF_XDP ports and with the
library they replace, and print minimum, median, maximum and the ratio of each pair of runs. It needs root.`,
		Example: "  antrail bench afxdp\n  antrail bench afxdp --rounds 3 --size 1500",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return usageError{err}
			}
			return bench.CompareAFXDP(c.Context(), o, c.OutOrStdout())
		},
	}
	c.Flags().IntVar(&o.Rounds, "rounds", 0, "runs of each side (default 5)")
	c.Flags().IntVar(&o.Frames, "frames", 0, "frames that end a run (default 2000000)")
	c.Flags().DurationVar(&o.Limit, "limit", 0, "time that ends a run (default 5s)")
	c.Flags().IntVar(&o.Size, "size", 0, "bytes of a frame, 60 to 1514 (default 64)")
	return c
}
