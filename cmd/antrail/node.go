//go:build linux

package main

import "github.com/spf13/cobra"

// addNodeCommands adds what takes a Node, and so Linux: the agent, the lab, and the
// questions that an agent answers, live or over files. Files of these commands say so
// in their first line.
func addNodeCommands(root *cobra.Command) {
	root.AddCommand(agentCommand(), switchCommand(), vswitchdCommand(), checkCommand(), probeCommand(), uninstallCommand(), labCommand(), demoCommand())
	root.AddCommand(dumpCommands()...)
	root.AddCommand(pipelineCommand())
	root.AddCommand(flushConntrackCommand(), conntrackCommand(), dropsCommand())
	root.AddCommand(getCommand(), explainCommand(), whyCommand(), topCommand(), traceCommand(), captureCommand(), replayCommand(), pageCommand(), supportBundleCommand(), dutCommand(), benchCommand())
}
