//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/switchd"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func agentCommand() *cobra.Command {
	var config, level, offload, switchSocket, await string
	var takeOver, newSwitch, orLeave, stay bool
	c := &cobra.Command{
		Use:   "agent --config FILE",
		Short: "Run the Node agent and its switch",
		Long: `Run the Node agent: it launches the switch, a process without privilege that forwards packets; loads the
pipeline; opens the gateway, the tunnel and the pods' ports; and sets up the Node's routes and nftables table. On
SIGTERM it ends the switch and takes everything back. If the agent is killed, the switch goes on, and the next agent
finds it.

With --switch the agent drives a switch that runs already (antrail switch), and takes nothing back.`,
		Example: "  antrail agent --config /etc/antrail/agent.yaml\n  antrail agent --config /etc/antrail/agent.yaml --take-over\n  antrail agent --config /etc/antrail/agent.yaml --switch /run/antrail/switch.sock",
		Args:    noArgs,
	}
	c.Flags().StringVar(&config, "config", "", "configuration file (YAML)")
	c.Flags().StringVar(&level, "log-level", "", "debug, info, warn or error, in place of the configuration's log.level")
	c.Flags().StringVar(&offload, "offload", "", "auto: the kernel forwards established connections between pods by itself, where it can; off; when not given, as the configuration says")
	c.Flags().StringVar(&switchSocket, "switch", "", "unix socket of a switch that runs already (antrail switch), in place of the configuration's switch")
	c.Flags().StringVar(&await, "await", "", "unix socket at which the process waits that becomes the switch (antrail switch --await), in place of a child: for two containers of a pod")
	c.Flags().BoolVar(&takeOver, "take-over", false, "take the place of the agent that runs; start as usual if none does")
	c.Flags().BoolVar(&newSwitch, "new-switch", false, "with --take-over: replace the switch, too, also if it has this version and these settings")
	c.Flags().BoolVar(&orLeave, "or-leave", false, "")
	c.Flags().MarkDeprecated("or-leave", "an agent whose place another takes always leaves")
	c.Flags().BoolVar(&stay, "stay", false, "when another agent has taken over, do nothing until SIGTERM, for who would start an agent again that ends")
	c.MarkFlagFilename("config")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if config == "" {
			return usageError{errors.New("--config is missing")}
		}
		if level != "" {
			if err := new(slog.Level).UnmarshalText([]byte(level)); err != nil {
				return usageError{err}
			}
		}
		conf, err := agent.LoadConfig(config)
		if err != nil {
			return err
		}
		if offload != "" {
			conf.Offload = offload
		}
		if !switchd.KnownOffload(conf.Offload) {
			return usageError{fmt.Errorf("--offload is auto or off, not %q", offload)}
		}
		if switchSocket != "" {
			conf.Switch = switchSocket
		}
		if err := conf.CheckSwitch(); err != nil {
			return usageError{err}
		}
		if level != "" {
			conf.Log.Level = level
		}
		if newSwitch && (!takeOver || conf.Switch != "") {
			return usageError{errors.New("--new-switch goes with --take-over, and not with --switch")}
		}
		if await != "" && (conf.Switch != "" || !filepath.IsAbs(await)) {
			return usageError{errors.New("--await is an absolute path, and goes not with --switch")}
		}
		conf.Release, conf.NewSwitch, conf.Await = version(), newSwitch, await
		return after(c.Context(), agent.Run(c.Context(), conf, conf.Log.NewLog(c.ErrOrStderr()), takeOver), stay)
	}
	return c
}

// after is what becomes of a process whose agent has ended. One that is to start again
// becomes an agent again: this very program, whatever lies at its path by now. To be
// told to stop before it began is no failure.
func after(ctx context.Context, err error, stay bool) error {
	switch {
	case errors.Is(err, agent.ErrAgain):
		fmt.Fprintln(os.Stderr, "antrail: starting again:", err)
		return errors.Join(err, unix.Exec(switchd.Program(), os.Args, os.Environ()))
	case errors.Is(err, agent.ErrTakenOver):
		if stay {
			<-ctx.Done()
		}
		return nil
	case errors.Is(err, agent.ErrRunning):
		return hintedError{err, "--take-over replaces it. On SIGTERM it takes back what it made, and ends."}
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil
	}
	return err
}
