//go:build linux && !portable

package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/version"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/switchd/local"
	"github.com/antrail/antrail/vswitchd"
	"github.com/antrail/antrail/vswitchd/ovsdb/replica"
	"github.com/spf13/cobra"
)

// switchSocket is the default socket of a switch's door.
const switchSocket = config.DefaultSwitch

// enterLaunched makes this process the switch, if a launcher has started it.
func enterLaunched() { switchd.Enter() }

func switchCommand() *cobra.Command {
	p := switchd.Process{}
	var settings, level, await string
	var confined bool
	var uid int
	c := &cobra.Command{
		Use:   "switch",
		Short: "Run the switch in a process of its own",
		Long: `Run the switch without an agent. It forwards by the flow entries that a controller sends to its socket
(docs/door.md), and opens the ports that the controller names. After a restart it goes on with its entries, ports and
connections. Its controller can be an agent (--switch), or a person with curl. Commands that ask an agent ask a switch,
too, if --socket names its socket.

With --confined the switch has no capability, no file but its own, and few system calls. A second process, its
launcher, stays root and only waits. The controller opens the ports and gives their descriptors to the switch.

With --await the process has no privilege from the start, as in a container of its own. It runs as user ` + fmt.Sprint(switchd.ConfinedUID) + `, and
waits until an agent (antrail agent --await) makes it the switch. Both are in one pod (POD_NAME of the environment).`,
		Example: "  antrail switch --confined\n  antrail switch --take-over\n  antrail switch --socket " + switchSocket +
			"\n  curl --unix-socket " + switchSocket + " http://switch/v1/switch\n  antrail dump-flows --socket " + switchSocket,
		Args: noArgs,
	}
	f := c.Flags()
	f.StringVar(&p.Socket, "socket", switchSocket, "unix socket of the door; mode 0600")
	f.StringVar(&p.Dir, "dir", "", "directory of the switch's files (default: SOCKET.d)")
	f.StringVar(&settings, "settings", "", "file of settings (JSON): workers, conntrack, offload and others")
	f.BoolVar(&p.TakeOver, "take-over", false, "take over from the running switch without a gap; if none runs, start as usual")
	f.BoolVar(&confined, "confined", false, "run the switch in a process without any privilege; its controller opens the ports")
	f.IntVar(&uid, "uid", switchd.ConfinedUID, "user and group of the confined switch: a number that nothing else on the machine uses")
	f.StringVar(&await, "await", "", "unix socket at which an agent makes this process its switch, with the agent's settings")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	c.MarkFlagFilename("settings")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return usageError{err}
		}
		log := slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: l}))
		if await != "" {
			if c.Flags().NFlag() > 1 && !(c.Flags().NFlag() == 2 && c.Flags().Changed("log-level")) {
				return usageError{errors.New("--await takes no flag but --log-level: the agent sets the rest")}
			}
			return switchd.Await(c.Context(), await, os.Getenv("POD_NAME"), programVersion(), log)
		}
		p.Dir = cmp.Or(p.Dir, p.Socket+".d")
		switch {
		case !filepath.IsAbs(p.Socket):
			return usageError{errors.New("--socket must be an absolute path")}
		case confined && !filepath.IsAbs(p.Dir):
			return usageError{errors.New("--dir must be an absolute path for a confined switch")}
		case c.Flags().Changed("uid") && !confined:
			return usageError{errors.New("--uid needs --confined")}
		}
		if settings != "" {
			s, err := local.ReadSettings(settings)
			if err != nil {
				return err
			}
			p.Settings = *s
		}
		p.Release = programVersion()
		p.Log = log
		if confined {
			return p.RunConfined(c.Context(), uid, l)
		}
		return p.Run(c.Context())
	}
	return c
}

// The default directories of Open vSwitch's sockets and database. OVS_RUNDIR and OVS_DBDIR
// replace them.
const ovsRunDir, ovsDatabaseDir = "/var/run/openvswitch", "/etc/openvswitch"

// bridgeName is a valid bridge name: a socket's file name, and an interface's.
var bridgeName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$`)

func vswitchdCommand() *cobra.Command {
	p := vswitchd.Process{}
	var level, datapath, remote string
	c := &cobra.Command{
		Use:   "vswitchd",
		Short: "Make a switch look like Open vSwitch to its tools",
		Long: `Serve Open vSwitch's database, OpenFlow 1.0, 1.3, 1.4 and 1.5, and control commands for a switch that runs already
(antrail switch), so that ovs-vsctl, ovs-ofctl, ovs-appctl and controllers drive it. The sockets are in RUNDIR, where
these tools look. The process is the switch's only controller, so it excludes an agent. It ends on SIGTERM; the switch
goes on.

The bridge and its ports follow the rows of the database, or with --db those of a running ovsdb-server. With --bridge,
vswitchd opens no database and serves OpenFlow alone; the switch keeps its ports.`,
		Example: "  antrail switch &\n  antrail vswitchd &\n  ovs-vsctl add-br br-int -- add-port br-int veth0\n  ovs-ofctl -O OpenFlow15 dump-flows br-int",
		Args:    noArgs,
	}
	f := c.Flags()
	f.StringVar(&p.Switch, "switch", switchSocket, "unix socket of the switch's door")
	f.StringVar(&p.RunDir, "rundir", cmp.Or(os.Getenv("OVS_RUNDIR"), ovsRunDir), "directory of sockets; OVS_RUNDIR sets the default")
	f.StringVar(&p.Database, "database", filepath.Join(cmp.Or(os.Getenv("OVS_DBDIR"), ovsDatabaseDir), "conf.db"), "file of the database, also one of Open vSwitch; OVS_DBDIR sets the default directory")
	f.StringVar(&remote, "db", "", "unix:SOCKET of an ovsdb-server that has the database, instead of --database")
	f.StringVar(&p.Bridge, "bridge", "", "name of the bridge, instead of a database")
	f.StringVar(&datapath, "datapath-id", "", "datapath ID of --bridge, 1 to 16 hexadecimal digits (default: from its name)")
	f.BoolVar(&p.TakeOver, "take-over", false, "take over from the switch's controller, if it has one")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	c.MarkFlagsMutuallyExclusive("bridge", "database", "db")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return usageError{err}
		}
		var err error
		if remote != "" {
			if p.DatabaseServer, err = replica.Socket(remote); err != nil {
				return usageError{fmt.Errorf("--db: %w", err)}
			}
		}
		switch {
		case p.Bridge != "" && !bridgeName.MatchString(p.Bridge):
			return usageError{errors.New("--bridge is not a bridge name: it needs 1 to 15 letters, digits, and _ . -")}
		case !filepath.IsAbs(p.RunDir):
			return usageError{errors.New("--rundir must be an absolute path")}
		case datapath != "" && p.Bridge == "":
			return usageError{errors.New("--datapath-id needs --bridge; the database has other_config:datapath-id")}
		case datapath != "":
			if p.DatapathID, err = strconv.ParseUint(datapath, 16, 64); err != nil {
				return usageError{errors.New("--datapath-id is not 1 to 16 hexadecimal digits")}
			}
		}
		p.Release = version.Of().Version
		p.Log = slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: l})
		return p.Run(c.Context())
	}
	return c
}
