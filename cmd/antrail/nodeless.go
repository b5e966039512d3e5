//go:build !linux

package main

import "github.com/spf13/cobra"

// enterLaunched does nothing: switches are for Nodes.
func enterLaunched() {}

// addWords does nothing: values are those of a Node.
func addWords(*cobra.Command) {}

// addNodeCommands adds what a machine that is no Node can do besides lessons: print
// what was recorded on one.
func addNodeCommands(root *cobra.Command) {
	c := &cobra.Command{
		Use:     "trace",
		Short:   "Print walks that were recorded on a Node with antrail trace --live --record",
		Example: "  antrail trace show examples/two-nodes/walks.json",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(showCommands()...)
	root.AddCommand(c)
}
