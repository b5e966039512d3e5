//go:build linux && !portable

package main

import (
	"cmp"
	"errors"
	"os"
	"time"

	"github.com/antrail/antrail/internal/terminal"
	"github.com/antrail/antrail/top"
	"github.com/spf13/cobra"
)

// topFlags are the flags of top.
type topFlags struct {
	from  source
	view  string
	plain bool
	count int
	every time.Duration
}

func topCommand() *cobra.Command {
	var f topFlags
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch the rates of ports, workers, tables, rules, connections and drops",
		Long: `Show what the switch does, on a screen that is refreshed every second: rates of ports, workers, tables, policy
rules, connections and drops, from the agent's counters. Keys switch between these views, sort and filter; ? lists
them.

Without a terminal, with --plain or with --count, a view is printed as lines, once for each interval.`,
		Example: "  antrail top\n  antrail top --node node-a --view rules --every 5s\n  antrail top --view reasons --count 1",
		Args:    noArgs,
	}
	f.from.addAgentTo(c)
	c.Flags().MarkHidden("output")
	c.Flags().StringVar(&f.view, "view", "ports", "ports, workers, tables, rules, connections, drops or reasons")
	c.Flags().BoolVar(&f.plain, "plain", false, "print lines instead of a screen")
	c.Flags().IntVar(&f.count, "count", 0, "end after so many tables of lines; 0 for no end")
	c.Flags().DurationVar(&f.every, "every", time.Second, "time between two readings")
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c) }
	return c
}

func (f *topFlags) run(c *cobra.Command) error {
	view, err := top.ViewNamed(f.view)
	if err != nil {
		return usageError{err}
	}
	if f.count < 0 || f.every < 10*time.Millisecond {
		return usageError{errors.New("--count must not be negative, and --every must be at least 10ms")}
	}
	client, err := f.from.client(c.ErrOrStderr())
	if err != nil {
		return err
	}
	o := top.Options{From: client, Title: cmp.Or(f.from.node, f.from.socket), View: view, Every: f.every, Now: time.Now}
	if f.plain || f.count > 0 || !terminal.Is(c.OutOrStdout()) || !terminal.Is(os.Stdin) {
		return top.Plain(c.Context(), o, f.count, c.OutOrStdout())
	}
	return top.Run(c.Context(), o)
}
