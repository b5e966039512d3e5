//go:build !linux || portable

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// hasSwitch says whether a switch can run on this system.
const hasSwitch = false

// sourcesLong is the part of the program's help about sources of answers.
const sourcesLong = `Commands load files and answer from those: flow files with --flows, Kubernetes
objects with --manifests and --node, or a program with --program. Agent and switch
need Linux, and so do commands that ask a running one.`

// onNodes are the commands that need Linux.
var onNodes = []string{"agent", "bench", "capture", "check", "demo", "drops", "flush-conntrack", "lab", "probe", "switch", "top", "uninstall", "vswitchd"}

// errNoSwitch is the error of commands that need Linux.
var errNoSwitch = hintedError{
	errors.New("this needs a switch, which antrail runs on Linux only"),
	"Here commands read files: --flows, --manifests with --node, or --program.",
}

// addNodeCommands adds stubs for the commands that need Linux, and removes examples that
// need it from the help of the others.
func addNodeCommands(root *cobra.Command) {
	keepFileExamples(root)
	for _, name := range onNodes {
		root.AddCommand(&cobra.Command{
			Use: name, Short: "A command for Linux", Hidden: true, DisableFlagParsing: true,
			RunE: func(c *cobra.Command, _ []string) error { return fmt.Errorf("%s: %w", c.CommandPath(), errNoSwitch) },
		})
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w; flags that name a running switch are for Linux", err)
	})
}

// keepFileExamples removes examples that ask a running switch, from a command and those
// below it.
func keepFileExamples(c *cobra.Command) {
	lines := slices.DeleteFunc(strings.Split(c.Example, "\n"), func(line string) bool {
		words := strings.Fields(line)
		isFile := func(w string) bool { return w == "--flows" || w == "--manifests" || w == "--program" }
		return len(words) > 1 && slices.Contains(onNodes, words[1]) || c.Flags().Lookup("manifests") != nil && !slices.ContainsFunc(words, isFile)
	})
	c.Example = strings.Join(lines, "\n")
	for _, sub := range c.Commands() {
		keepFileExamples(sub)
	}
}

// agentSocket is an error: no agent runs here.
func (s *source) agentSocket() (string, error) { return "", errNoSwitch }

// nodesOfLab is an error: no lab runs here.
func nodesOfLab(string) ([]string, error) { return nil, errNoSwitch }

// nodeFlagWords and nodeArgWords are completions that need a Node.
var nodeFlagWords, nodeArgWords map[string]wordsOf

// enterLaunched does nothing: no switch is launched here.
func enterLaunched() {}
