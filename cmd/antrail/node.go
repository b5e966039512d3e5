//go:build linux && !portable

package main

import (
	"github.com/antrail/antrail/bench"
	"github.com/spf13/cobra"
)

// hasSwitch says whether a switch can run on this system.
const hasSwitch = true

// sourcesLong is the part of the program's help about sources of answers.
const sourcesLong = `Commands that show something ask a running agent over its unix socket, or a switch
that runs without one. They can also load files and ask those: flow files with
--flows, Kubernetes objects with --manifests.`

// addNodeCommands adds the commands that need a Node, and so Linux: the agent, the switch,
// the lab, and queries that only a running switch answers.
func addNodeCommands(root *cobra.Command) {
	root.AddCommand(agentCommand(), switchCommand(), vswitchdCommand(), checkCommand(), probeCommand(), uninstallCommand(), labCommand(), demoCommand())
	root.AddCommand(flushConntrackCommand(), dropsCommand(), topCommand(), captureCommand(), benchCommand())
}

// nodeFlagWords and nodeArgWords are completions that need a lab or a benchmark.
var (
	nodeFlagWords = map[string]wordsOf{"--lab": labNames}
	nodeArgWords  = map[string]wordsOf{
		"lab exec": first(placeNames),
		"bench":    func(*cobra.Command, []string) []string { return append(bench.ProfileNames(), "all") },
	}
)
