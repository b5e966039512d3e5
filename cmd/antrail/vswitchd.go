//go:build linux

package main

import (
	"cmp"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/antrail/antrail/vswitchd"
	"github.com/spf13/cobra"
)

// ovsRunDir is where Open vSwitch's tools look for a bridge, unless OVS_RUNDIR says otherwise.
const ovsRunDir = "/var/run/openvswitch"

// bridgeName is what a bridge may be called: the name of a socket's file, as of an interface.
var bridgeName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$`)

func vswitchdCommand() *cobra.Command {
	p := vswitchd.Process{}
	var level, datapath string
	c := &cobra.Command{
		Use:   "vswitchd",
		Short: "Serve OpenFlow for a switch, as ovs-vswitchd does",
		Long: `Serve OpenFlow 1.0, 1.3, 1.4 and 1.5 for a switch that runs already (antrail switch), so that ovs-ofctl and
controllers of Open vSwitch drive it. The socket is RUNDIR/BRIDGE.mgmt, where ovs-ofctl looks for the bridge.
The process is the switch's only controller, so it does not go with an agent.`,
		Example: "  antrail switch &\n  antrail vswitchd --bridge br-int\n  ovs-ofctl -O OpenFlow15 dump-flows br-int",
		Args:    noArgs,
	}
	f := c.Flags()
	f.StringVar(&p.Switch, "switch", switchSocket, "unix socket of the switch's door")
	f.StringVar(&p.Bridge, "bridge", "br-int", "name of the bridge")
	f.StringVar(&p.RunDir, "rundir", cmp.Or(os.Getenv("OVS_RUNDIR"), ovsRunDir), "directory of the bridge's socket; OVS_RUNDIR sets the default")
	f.StringVar(&datapath, "datapath-id", "", "the bridge's number, 1 to 16 hexadecimal digits; made of an address when not given")
	f.BoolVar(&p.TakeOver, "take-over", false, "take the place of the switch's controller, if it has one")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return usageError{err}
		}
		var err error
		switch {
		case !bridgeName.MatchString(p.Bridge):
			return usageError{errors.New("--bridge is no name of a bridge: 1 to 15 letters, digits, and _ . -")}
		case !filepath.IsAbs(p.RunDir):
			return usageError{errors.New("--rundir is no absolute path")}
		case datapath != "":
			if p.DatapathID, err = strconv.ParseUint(datapath, 16, 64); err != nil {
				return usageError{errors.New("--datapath-id is not 1 to 16 hexadecimal digits")}
			}
		}
		p.Release = programVersion()
		p.Log = slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: l}))
		return p.Run(c.Context())
	}
	return c
}
