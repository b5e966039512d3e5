//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/attack"
	"github.com/antrail/antrail/tunnel"
	"github.com/spf13/cobra"
)

// familyNames are the values of --family, with what attack calls them.
var familyNames = map[string]string{"4": "IPv4", "6": "IPv6", "both": ""}

func labAttackTestCommand() *cobra.Command {
	var o attack.Options
	var family, output string
	var six, list bool
	c := &cobra.Command{
		Use:   "attack-test",
		Short: "Attack from one pod, and tell what arrives and what other pods notice",
		Long: `Make a lab, attack from one of its pods, and take the lab down again. Attacks are tunnel packets, forged MACs
and neighbours, headers that no honest pod sends, and floods. Meanwhile other pods ping, connect and stream.

It prints a line per attack: how much was sent, how much arrived, how drops names it, and what the other pods saw.
It exits with 0 only when nothing arrived that must not, every drop has its name, and no connect failed. Times are
printed, but not judged. It needs root.`,
		Example: "  antrail lab attack-test\n  antrail lab attack-test --duration 200ms --only VLAN --family 4\n  antrail lab attack-test --tunnel vxlan -o json",
		Args:    noArgs,
	}
	f := c.Flags()
	f.DurationVar(&o.Duration, "duration", 2*time.Second, "how long each attack is watched, and how long a flood lasts")
	f.StringVar(&o.Only, "only", "", "play only attacks whose name has this in it")
	f.StringVar(&family, "family", "both", "4, 6 or both")
	f.BoolVarP(&six, "ipv6", "6", false, "the same as --family 6")
	f.BoolVar(&list, "list", false, "print the names of the attacks, and play none")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	f.StringVar(&o.Lab.Driver, "driver", lab.DefaultDriver(), "of the pods' ports: auto, afxdp or afpacket")
	f.StringVar(&o.Lab.TunnelDriver, "tunnel-driver", agent.DriverKernel, "of the tunnel: kernel, afxdp or auto")
	f.StringVar(&o.Lab.Tunnel, "tunnel", tunnel.KindGeneve.String(), "between the Nodes: geneve, vxlan or gre")
	f.StringVar(&o.Lab.Offload, "offload", lab.DefaultOffload(), "of established connections between pods to the kernel: auto or off")
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
	if err := checkDriver(&o.Lab); err != nil {
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
		return fmt.Errorf("%d of %d attacks did not come to nothing", n, len(r.Rows))
	}
	return nil
}
