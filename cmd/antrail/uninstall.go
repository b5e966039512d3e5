//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrail/antrail/agent"
	"github.com/spf13/cobra"
)

// stopPatience is how long an agent may take to stop.
const stopPatience = 30 * time.Second

func uninstallCommand() *cobra.Command {
	var socket string
	var force, stay bool
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Leave the Node as it was before the agent",
		Long: `Take back what an agent changed on the Node and left: nftables tables, addresses of Egresses, sysctls, and the
files beside its socket, among them the connections and entries that its successor would go on with. It
goes by the record that the agent keeps, so it also works after one that was killed.`,
		Example: "  antrail uninstall\n  antrail uninstall --force   # stops the agent first",
		Args:    noArgs,
	}
	c.Flags().StringVar(&socket, "socket", defaultSocket(), "unix socket of the agent; "+socketEnv+" sets the default")
	c.Flags().BoolVar(&force, "force", false, "stop the agent first, if it runs")
	c.Flags().BoolVar(&stay, "stay", false, "then wait for SIGTERM, as the pods of a DaemonSet have to")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if force {
			ctx, cancel := context.WithTimeout(c.Context(), stopPatience)
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
			return hintedError{err, "Stop it first, or give --force, which does."}
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
