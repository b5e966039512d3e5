package main

import (
	"errors"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/dut"
	"github.com/spf13/cobra"
)

func dutCommand() *cobra.Command {
	var timeouts string
	var walk bool
	c := &cobra.Command{
		Use:   "dut",
		Short: "Let another program drive a switch packet by packet",
		Long: `Read one JSON request a line from stdin, and answer each with one line on stdout: load a pipeline, receive a
frame, turn the clock, list connections. Ports are in memory and the clock stands still between requests, so that
another switch can be compared packet by packet.`,
		Example: `  echo '{"op":"reset","flows":["table=0,ip actions=output:2"]}' | antrail dut`,
		Args:    noArgs,
	}
	c.Flags().StringVar(&timeouts, "ct-timeouts", "ovs", "connection timeouts: those of Open vSwitch's userspace datapath (ovs), or the default ones of an agent")
	c.Flags().BoolVar(&walk, "walk", false, "no exact-match cache: every packet walks the tables")
	c.RunE = func(c *cobra.Command, _ []string) error {
		t := proto.DefaultTimeouts()
		switch timeouts {
		case "default":
		case "ovs":
			t = proto.OVSTimeouts()
		default:
			return usageError{errors.New("--ct-timeouts must be default or ovs")}
		}
		cache := 0
		if walk {
			cache = -1
		}
		d, err := dut.New(t, cache)
		if err != nil {
			return err
		}
		return d.Serve(c.InOrStdin(), c.OutOrStdout())
	}
	return c
}
