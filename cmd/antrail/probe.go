//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/spf13/cobra"
)

// probePatience is how long a probe waits for an answer, as a kubelet's does.
const probePatience = 5 * time.Second

func probeCommand() *cobra.Command {
	var socket string
	var ready, own bool
	c := &cobra.Command{
		Use:   "probe",
		Short: "Ask whether the agent is alive or ready, for the probes of a container",
		Long: `Ask the running agent whether its workers turn, or with --ready, whether it does what it is there for: entries
installed, ports open, objects read. The exit code is 1, with the reason, when not.

With --own the agent has to be one of the caller's own PID namespace, that is of its container: while one container
takes over from another, both reach the socket, and only one of them is served by its own agent.`,
		Example: "  antrail probe --ready\n  antrail probe --ready --own",
		Args:    noArgs,
	}
	c.Flags().StringVar(&socket, "socket", defaultSocket(), "unix socket of the agent; "+socketEnv+" sets the default")
	c.Flags().BoolVar(&ready, "ready", false, "ask for /readyz, and not for /healthz")
	c.Flags().BoolVar(&own, "own", false, "the agent has to be one of the caller's own container")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := context.WithTimeout(c.Context(), probePatience)
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
