//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/upgrade"
	"github.com/spf13/cobra"
)

func labUpgradeTestCommand() *cobra.Command {
	var id, output string
	driver := agent.DriverAuto
	var o upgrade.Options
	c := &cobra.Command{
		Use:   "upgrade-test",
		Short: "Kill an agent and its switch under traffic, and tell what the traffic noticed",
		Long: `Make a lab, send traffic through it (TCP connections with a heartbeat each, and numbered UDP packets), kill and
replace an agent and its switch, and print what was lost and for how long nothing came. It exits with 0 only when no
connection was lost. The lab is taken down again; with --lab it is one that is up, and stays.`,
		Example: "  antrail lab upgrade-test\n  antrail lab upgrade-test --connections 100 --rate 1000 -o json",
		Args:    noArgs,
	}
	c.Flags().StringVar(&id, "lab", "", "a lab that is up, in place of one of its own")
	c.Flags().StringVar(&driver, "driver", driver, "driver of the pods' ports: auto, afpacket or afxdp")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	c.Flags().IntVar(&o.Connections, "connections", 1000, "TCP connections, at least one for each way")
	c.Flags().IntVar(&o.Rate, "rate", 10000, "UDP packets a second")
	c.Flags().DurationVar(&o.Heartbeat, "heartbeat", 0, "time between heartbeats of a connection (200ms)")
	c.Flags().DurationVar(&o.Window, "window", 0, "how long traffic is watched after each event (3s)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case output != "table" && output != "json":
			return usageError{errors.New("--output is table or json")}
		case o.Connections < 1 || o.Rate < 1 || o.Heartbeat < 0 || o.Window < 0:
			return usageError{errors.New("--connections and --rate are at least 1, and times are not negative")}
		case !agent.KnownDriver(driver):
			return usageError{fmt.Errorf("--driver: %q is none of auto, afpacket and afxdp", driver)}
		case id != "" && c.Flags().Changed("driver"):
			return usageError{errors.New("a lab that is up has its drivers: --lab or --driver")}
		}
		o.Progress = c.ErrOrStderr()
		r, err := upgradeTest(c.Context(), id, lab.Options{Driver: driver}, o)
		if err != nil {
			return err
		}
		write := r.Write
		if output == "json" {
			write = r.JSON
		}
		if err := write(c.OutOrStdout()); err != nil {
			return err
		}
		if n := r.Lost(); n > 0 {
			return fmt.Errorf("%d connections were lost", n)
		}
		return nil
	}
	return c
}

// upgradeTest runs the test in a lab that is up, or in one of its own.
func upgradeTest(ctx context.Context, id string, with lab.Options, o upgrade.Options) (r *upgrade.Report, err error) {
	if id != "" {
		l, err := lab.Find(lab.StateDir(), id)
		if err != nil {
			return nil, err
		}
		return upgrade.Run(ctx, l, o)
	}
	if err := lab.Sweep(lab.StateDir()); err != nil {
		return nil, err
	}
	with.Nodes, with.Transient, with.Progress = 2, true, o.Progress
	l, err := lab.Up(ctx, with)
	if err != nil {
		return nil, err
	}
	r, err = upgrade.Run(ctx, l, o)
	return r, errors.Join(err, l.Down())
}
