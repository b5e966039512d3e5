//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/attack"
	"github.com/antrail/antrail/lab/upgrade"
	"github.com/antrail/antrail/tunnel"
	"github.com/spf13/cobra"
)

// familyNames are the values of --family, with package attack's names.
var familyNames = map[string]string{"4": "IPv4", "6": "IPv6", "both": ""}

func labAttackTestCommand() *cobra.Command {
	var o attack.Options
	var family, output string
	var six, list bool
	c := &cobra.Command{
		Use:   "attack-test",
		Short: "Attack from one pod, and report what arrives and how other pods fare",
		Long: `Make a lab, attack from one of its pods, and remove the lab again. Attacks are tunnel packets, forged MACs
and neighbours, headers that no honest pod sends, and floods. Meanwhile other pods ping, connect and stream.

It prints a line per attack: how much was sent, how much arrived, how drops names it, and what the other pods saw.
It exits with 0 only if nothing arrived that must not, every drop has its name, and no connect failed. Times are
printed, but not judged. It needs root.`,
		Example: "  antrail lab attack-test\n  antrail lab attack-test --duration 200ms --only VLAN --family 4\n  antrail lab attack-test --tunnel vxlan -o json",
		Args:    noArgs,
	}
	f := c.Flags()
	f.DurationVar(&o.Duration, "duration", 2*time.Second, "how long each attack is observed, and how long a flood lasts")
	f.StringVar(&o.Only, "only", "", "play only attacks whose name has this in it")
	f.StringVar(&family, "family", "both", "4, 6 or both")
	f.BoolVarP(&six, "ipv6", "6", false, "the same as --family 6")
	f.BoolVar(&list, "list", false, "print the names of the attacks, and play none")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	f.StringVar(&o.Lab.Driver, "driver", lab.DefaultDriver(), "of the pods' ports: auto, afxdp or afpacket")
	f.StringVar(&o.Lab.TunnelDriver, "tunnel-driver", lab.DefaultTunnelDriver(), "of the tunnel: kernel, afxdp or auto")
	f.StringVar(&o.Lab.Tunnel, "tunnel", tunnel.KindGeneve.String(), "between the Nodes: geneve, vxlan or gre")
	f.StringVar(&o.Lab.Offload, "offload", lab.DefaultOffload(), "of established connections to the kernel: auto or off")
	c.MarkFlagsMutuallyExclusive("family", "ipv6")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if six {
			family = "6"
		}
		name, known := familyNames[family]
		switch {
		case output != "table" && output != "json":
			return usageError{errors.New("--output is table or json")}
		case !known:
			return usageError{fmt.Errorf("--family is 4, 6 or both, not %q", family)}
		case o.Duration <= 0:
			return usageError{fmt.Errorf("--duration is more than 0, not %v", o.Duration)}
		}
		if list {
			return printAttacks(c)
		}
		o.Family = name
		return attackTest(c, o, output == "json")
	}
	return c
}

// printAttacks prints the names of the attacks, one a line.
func printAttacks(c *cobra.Command) error {
	for _, name := range attack.Names() {
		if _, err := fmt.Fprintln(c.OutOrStdout(), name); err != nil {
			return err
		}
	}
	return nil
}

// attackTest plays the attacks and prints the table of their results.
func attackTest(c *cobra.Command, o attack.Options, asJSON bool) error {
	o.Lab.Uplink = lab.UplinkPlain
	if err := checkOptions(&o.Lab); err != nil {
		return err
	}
	if !attack.Known(o.Only) {
		return usageError{fmt.Errorf("--only: no attack has %q in its name; --list prints them", o.Only)}
	}
	o.Progress = c.ErrOrStderr()
	r, err := attack.Run(c.Context(), o)
	if err != nil {
		return err
	}
	write := r.Write
	if asJSON {
		write = r.JSON
	}
	if err := write(c.OutOrStdout()); err != nil {
		return err
	}
	if n := r.Failed(); n > 0 {
		return fmt.Errorf("%d of %d attacks had an effect", n, len(r.Rows))
	}
	return nil
}

func labUpgradeTestCommand() *cobra.Command {
	var id, output string
	driver := config.DriverAuto
	var o upgrade.Options
	c := &cobra.Command{
		Use:   "upgrade-test",
		Short: "Kill an agent and its switch under traffic, and report what was lost",
		Long: `Make a lab, send traffic through it (TCP connections with a heartbeat each, and numbered UDP packets), kill and
replace an agent and its switch, and print what was lost and for how long nothing came. It exits with 0 only if no
connection was lost. The lab is removed again; with --lab it uses a lab that is up, and keeps it.`,
		Example: "  antrail lab upgrade-test\n  antrail lab upgrade-test --connections 100 --rate 1000 -o json",
		Args:    noArgs,
	}
	c.Flags().StringVar(&id, "lab", "", "use this lab, which is up, instead of making one")
	c.Flags().StringVar(&driver, "driver", driver, "driver of the pods' ports: auto, afpacket or afxdp")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	c.Flags().IntVar(&o.Connections, "connections", 1000, "TCP connections, at least one for each path")
	c.Flags().IntVar(&o.Rate, "rate", 10000, "UDP packets a second")
	c.Flags().DurationVar(&o.Heartbeat, "heartbeat", 0, "time between heartbeats of a connection (200ms)")
	c.Flags().DurationVar(&o.Window, "window", 0, "how long traffic is observed after each event (3s)")
	c.Flags().IntVar(&o.Kills, "kills", 20, "how often the agent is killed")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch {
		case output != "table" && output != "json":
			return usageError{errors.New("--output is table or json")}
		case o.Connections < 1 || o.Rate < 1 || o.Kills < 1 || o.Heartbeat < 0 || o.Window < 0:
			return usageError{errors.New("--connections, --rate and --kills must be at least 1, and times must not be negative")}
		case !config.KnownDriver(driver):
			return usageError{fmt.Errorf("--driver: %q is none of auto, afpacket and afxdp", driver)}
		case id != "" && c.Flags().Changed("driver"):
			return usageError{errors.New("--lab excludes --driver: a lab that is up has its drivers")}
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
