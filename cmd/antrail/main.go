// Command antrail is all of antrail in one binary: the Node agent, labs of Nodes on one
// machine, and commands that query the switch.
//
// There is no logic here, only flags and wiring. Exit codes: 0 done, 1 failed,
// 2 wrong usage.
//
// A command's file has its name. These files hold more than one command, or none:
//
//	completion.go           the scripts for shells, and man for releases
//	complete.go             the possible words of a line
//	usage.go                exit codes and their errors; missing and excess arguments
//	source.go               the flags that choose agents, a switch or files to ask
//	dump.go                 the commands that begin with dump-
//	get.go                  get and explain, which show objects
//	trace.go                trace, of one packet or with --live
//	trace_replay.go         trace replay
//	trace_show.go           trace show and trace paths
//	labtests.go             lab attack-test and lab upgrade-test
//	support.go              support-bundle
//	kubectl.go              the plugin of kubectl, this program under another name
//	agent.go                agent, and probe and uninstall, which need it or its record
//	node.go                 the commands that need a Node, and so Linux
//	nodeless.go             their replies elsewhere; -tags portable builds that on Linux
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/antrail/antrail/internal/version"
	"github.com/spf13/cobra"
)

func main() {
	enterLaunched() // first, because it may execute the program again as another user
	if isPlugin(os.Args[0]) {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		code := runPlugin(ctx, os.Args[1:], os.Stdout, os.Stderr)
		stop()
		os.Exit(code)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program and returns its exit code. SIGINT and SIGTERM end the command's
// context, however often they come, so that a command always cleans up.
func run(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	began := false
	root := rootCommand(&began)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var coded codedError
	if errors.As(err, &coded) {
		if coded.error != nil {
			tellError(stderr, err)
		}
		return coded.code
	}
	tellError(stderr, err)
	var usage usageError
	if !began || errors.As(err, &usage) {
		fmt.Fprintf(stderr, "See: %s --help\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// tellError prints an error and its hint.
func tellError(w io.Writer, err error) {
	fmt.Fprintln(w, "antrail:", plainText(err))
	var hinted interface{ Hint() string }
	switch {
	case errors.As(err, &hinted) && hinted.Hint() != "":
		fmt.Fprintln(w, hinted.Hint())
	case hasSwitch && errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		fmt.Fprintln(w, "You are not root: labs, the agent, and most commands that ask it need root.")
	}
}

// rootCommand makes the command tree. began is set when a command's own work begins. An
// earlier error is a usage error.
func rootCommand(began *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "antrail",
		Short: "A software switch that runs Antrea's pipeline without Open vSwitch",
		Long: `antrail is a software switch for Kubernetes Nodes: a packet enters by a port and
walks tables of flow entries until an entry gives a verdict.

` + sourcesLong,
		Example:       "  antrail demo\n  antrail dump-flows --flows examples/seed/seed.flows Classifier",
		Args:          noArgs,
		Version:       programVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(dumpCommands()...)
	root.AddCommand(pipelineCommand(), conntrackCommand(), getCommand(), explainCommand(), whyCommand(), traceCommand(), replayCommand(), pageCommand(), supportBundleCommand(), dutCommand())
	root.AddCommand(learnCommand(), completionCommand(), versionCommand(), manCommand())
	addNodeCommands(root) // node.go
	addWords(root)        // complete.go
	noteBegin(root, began)
	return root
}

// noteBegin makes every command set began when its own work begins, after all checks of
// flags and arguments.
func noteBegin(c *cobra.Command, began *bool) {
	if work := c.RunE; work != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*began = true
			return work(c, args)
		}
	}
	for _, sub := range c.Commands() {
		noteBegin(sub, began)
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit, its date and the version of Go",
		Example: "  antrail version",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), programVersion())
			return err
		},
	}
}

// programVersion identifies the build. An agent replaces a switch whose line differs from
// its own.
func programVersion() string { return version.Of().Line("antrail") }
