//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/host/preflight"
	"github.com/antrail/antrail/internal/confine"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/switchd/local"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func agentCommand() *cobra.Command {
	var file, level, offload, switchSocket, await string
	var takeOver, newSwitch, orLeave, stay bool
	c := &cobra.Command{
		Use:   "agent --config FILE",
		Short: "Run the Node agent and its switch",
		Long: `Run the Node agent. It launches the switch, a process without privilege that forwards packets. It loads the
pipeline, opens the gateway, the tunnel and the pods' ports, and sets up the Node's routes and nftables table. On
SIGTERM it ends the switch and undoes its changes. If the agent is killed, the switch goes on, and the next agent
takes it over.

With --switch the agent drives a switch that runs already (antrail switch), and undoes nothing.`,
		Example: "  antrail agent --config /etc/antrail/agent.yaml\n  antrail agent --config /etc/antrail/agent.yaml --take-over\n  antrail agent --config /etc/antrail/agent.yaml --switch /run/antrail/switch.sock",
		Args:    noArgs,
	}
	c.Flags().StringVar(&file, "config", "", "configuration file (YAML)")
	c.Flags().StringVar(&level, "log-level", "", "debug, info, warn or error; overrides the configuration's log.level")
	c.Flags().StringVar(&offload, "offload", "", "auto: the kernel forwards established connections where it can; off; overrides the configuration's offload")
	c.Flags().StringVar(&switchSocket, "switch", "", "unix socket of a switch that runs already (antrail switch); overrides the configuration's switch")
	c.Flags().StringVar(&await, "await", "", "unix socket of a process that waits to become the switch (antrail switch --await), instead of a child: for two containers of a pod")
	c.Flags().BoolVar(&takeOver, "take-over", false, "take over from the running agent; if none runs, start as usual")
	c.Flags().BoolVar(&newSwitch, "new-switch", false, "with --take-over: replace the switch, too, even if its version and settings are the same")
	c.Flags().BoolVar(&orLeave, "or-leave", false, "")
	c.Flags().MarkDeprecated("or-leave", "an agent whose place another takes always leaves")
	c.Flags().BoolVar(&stay, "stay", false, "after another agent has taken over, wait for SIGTERM: for supervisors that restart an agent that ends")
	c.MarkFlagFilename("config")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if file == "" {
			return usageError{errors.New("--config is missing")}
		}
		if level != "" {
			if err := new(slog.Level).UnmarshalText([]byte(level)); err != nil {
				return usageError{err}
			}
		}
		conf, err := config.Load(file)
		if err != nil {
			return err
		}
		if offload != "" {
			conf.Offload = offload
		}
		if !local.KnownOffload(conf.Offload) {
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
			return usageError{errors.New("--new-switch needs --take-over, and excludes --switch")}
		}
		if await != "" && (conf.Switch != "" || !filepath.IsAbs(await)) {
			return usageError{errors.New("--await needs an absolute path, and excludes --switch")}
		}
		conf.Release, conf.NewSwitch, conf.Await = programVersion(), newSwitch, await
		log := conf.Log.NewLog(c.ErrOrStderr())
		if err := dropCapabilities(c.Context(), conf, log); err != nil {
			return err
		}
		return after(c.Context(), agent.Run(c.Context(), conf, log, takeOver), stay)
	}
	return c
}

// dropCapabilities drops the capabilities that an agent does not need. If the process has
// others, this program executes itself again without them. The set does not depend on the
// configuration, which may change before the agent starts again.
func dropCapabilities(ctx context.Context, conf *config.Config, log *slog.Logger) error {
	if ctx.Err() != nil { // execve would forget the signal
		return ctx.Err()
	}
	left, err := confine.Keep(preflight.Kept(conf.Await == ""), switchd.Program())
	if left != 0 {
		log.Warn("the agent has capabilities that it does not need, and cannot drop them without CAP_SETPCAP", "mask", fmt.Sprintf("%x", left))
	}
	return err
}

// after handles the end of an agent. If the agent is to start again, the process executes
// the same program file, whatever lies at its path by now. A SIGTERM before the start is
// not a failure.
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
		return hintedError{err, "--take-over replaces it. SIGTERM ends it, and it undoes its changes."}
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil
	}
	return err
}

// probeTimeout is how long a probe waits for an answer, like a kubelet.
const probeTimeout = 5 * time.Second

func probeCommand() *cobra.Command {
	var socket string
	var ready, own bool
	c := &cobra.Command{
		Use:   "probe",
		Short: "Ask whether the agent is alive or ready, for the probes of a container",
		Long: `Ask the running agent whether its workers run, or with --ready, whether it does its job: entries installed,
ports open, objects read. If not, the exit code is 1, and the reason is printed.

With --own the agent must be in the caller's PID namespace, that is, its container. While one container takes over
from another, both reach the socket, and only one of them is served by its own agent.`,
		Example: "  antrail probe --ready\n  antrail probe --ready --own",
		Args:    noArgs,
	}
	c.Flags().StringVar(&socket, "socket", defaultSocket(), "unix socket of the agent; "+socketEnv+" sets the default")
	c.Flags().BoolVar(&ready, "ready", false, "ask for /readyz instead of /healthz")
	c.Flags().BoolVar(&own, "own", false, "the agent must be in the caller's container")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := context.WithTimeout(c.Context(), probeTimeout)
		defer stop()
		path := "/healthz"
		if ready {
			path = "/readyz"
		}
		if err := agent.Probe(ctx, socket, path, own); err != nil {
			return err
		}
		_, err := fmt.Fprintln(c.OutOrStdout(), "ok")
		return err
	}
	return c
}

// stopTimeout is how long an agent may take to stop.
const stopTimeout = 30 * time.Second

func uninstallCommand() *cobra.Command {
	var socket string
	var force, stay, card bool
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Leave the Node as it was before the agent",
		Long: `Undo what an agent changed on the Node: nftables tables, addresses of Egresses, sysctls, and the files beside its
socket, among them the connections and entries for its successor. It uses the agent's record of changes, so it also
works after a kill.

With --card, it only returns the addresses and routes of a card that the agent owned, and only if neither the agent
nor its switch runs. The systemd unit does that after each end of the agent.`,
		Example: "  antrail uninstall\n  antrail uninstall --force   # stops the agent first\n  antrail uninstall --card",
		Args:    noArgs,
	}
	c.Flags().StringVar(&socket, "socket", defaultSocket(), "unix socket of the agent; "+socketEnv+" sets the default")
	c.Flags().BoolVar(&force, "force", false, "stop the agent first, if it runs")
	c.Flags().BoolVar(&stay, "stay", false, "then wait for SIGTERM, as pods of a DaemonSet must")
	c.Flags().BoolVar(&card, "card", false, "only return the addresses of a card that the agent owned, unless the agent or its switch runs")
	c.MarkFlagsMutuallyExclusive("card", "force")
	c.MarkFlagsMutuallyExclusive("card", "stay")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if card {
			return agent.ReturnCard(socket, func(what string) { fmt.Fprintln(c.OutOrStdout(), what) })
		}
		if force {
			ctx, cancel := context.WithTimeout(c.Context(), stopTimeout)
			defer cancel()
			if err := agent.Stop(ctx, socket); err != nil {
				return err
			}
		}
		told := false
		err := agent.Uninstall(socket, func(what string) {
			told = true
			fmt.Fprintln(c.OutOrStdout(), what)
		})
		if errors.Is(err, agent.ErrRunning) {
			return hintedError{err, "Stop it first, or use --force, which stops it."}
		}
		if err == nil && !told {
			fmt.Fprintln(c.OutOrStdout(), "nothing is left of the agent of", socket)
		}
		if err == nil && stay {
			<-c.Context().Done()
		}
		return err
	}
	return c
}
