package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antrail/antrail/control/kubectl"
)

// The plugin of kubectl is this program under another name: kubectl antrail ARGS runs
// antrail ARGS in the container of a Node's agent.

// pluginName is the program's name as the plugin.
const pluginName = "kubectl-antrail"

// pluginHelp is the plugin's help.
const pluginHelp = `kubectl antrail runs a command of antrail at the agent of a Node, through the API server (pods/exec).

Usage:
  kubectl antrail [--node NODE] COMMAND [ARG...]

Without --node it is the Node of the Pod that --pod of the command names, or the only one that has an agent.
Files are those of the agent's container: what a command writes goes to standard output (-w -).

Examples:
  kubectl antrail --node worker-1 get pods
  kubectl antrail drops --pod shop/checkout-5d9c
  kubectl antrail --node worker-1 support-bundle --redact -w - >support.tar.gz

Flags of the plugin, before the command or behind it:
  --node NODE                  the Node whose agent is asked
  --agent-namespace NAMESPACE  where the agents run (default: any)
  --kubeconfig FILE            as kubectl
  --context NAME               as kubectl

antrail COMMAND --help tells of a command.`

// plugin has the values of the plugin's own flags, and the command.
type plugin struct {
	node, pod, namespace, kubeconfig, context string
	command                                   []string
}

// isPlugin says whether the program was started as the plugin.
func isPlugin(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == pluginName
}

// localOnly are flags without meaning in the agent's container: files of this machine, and
// other agents.
var localOnly = []string{"flows", "manifests", "program", "socket", "lab"}

// parsePlugin takes the plugin's flags out of the arguments.
func parsePlugin(args []string) (*plugin, error) {
	p := &plugin{}
	own := map[string]*string{"node": &p.node, "agent-namespace": &p.namespace, "kubeconfig": &p.kubeconfig, "context": &p.context}
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(strings.TrimPrefix(args[i], "--"), "=")
		if args[i] == "--" {
			p.command = append(p.command, args[i:]...)
			break
		}
		to, isOwn := own[name]
		switch {
		case !strings.HasPrefix(args[i], "--"):
			isOwn = false
		case slices.Contains(localOnly, name):
			return nil, fmt.Errorf("--%s is for this machine, but the command runs in the agent's container: run antrail instead", name)
		case (isOwn || name == "pod") && !given:
			if i+1 == len(args) {
				return nil, fmt.Errorf("--%s has no value", name)
			}
			value = args[i+1]
		}
		if name == "pod" && strings.HasPrefix(args[i], "--") {
			p.pod = value
		}
		if !isOwn {
			p.command = append(p.command, args[i])
			continue
		}
		*to = value
		if !given {
			i++
		}
	}
	if w := writesFile(p.command); w != "" {
		return nil, fmt.Errorf("%s would be written in the agent's container: use -w - and redirect the output", w)
	}
	return p, nil
}

// writesFile is the file that --write names, "" for standard output and commands without it.
func writesFile(command []string) string {
	for i, a := range command {
		name, value, given := strings.Cut(a, "=")
		if name != "-w" && name != "--write" {
			continue
		}
		if !given && i+1 < len(command) {
			value = command[i+1]
		}
		if command[0] != "get" && value != "-" { // get -w watches
			return value
		}
	}
	return ""
}

// runPlugin runs the plugin, and returns the command's exit code.
func runPlugin(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || slices.Contains([]string{"help", "--help", "-h"}, args[0]) {
		fmt.Fprintln(stdout, pluginHelp)
		return 0
	}
	p, err := parsePlugin(args)
	if err == nil && len(p.command) == 0 {
		err = errors.New("the command is missing")
	}
	if err != nil {
		fmt.Fprintf(stderr, "kubectl antrail: %v\nSee: kubectl antrail --help\n", err)
		return exitUsage
	}
	code, err := p.run(ctx, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "kubectl antrail:", err)
		return exitFailed
	}
	return code
}

// run finds the agent, and runs the command there.
func (p *plugin) run(ctx context.Context, stdout, stderr io.Writer) (int, error) {
	cluster, err := kubectl.Connect(p.kubeconfig, p.context)
	if err != nil {
		return 0, err
	}
	if p.node == "" && p.pod != "" {
		if p.node, err = cluster.NodeOf(ctx, p.pod); err != nil {
			return 0, err
		}
	}
	agents, err := cluster.Agents(ctx, p.namespace)
	if err != nil {
		return 0, err
	}
	agent, err := kubectl.Choose(agents, p.node)
	if err != nil {
		return 0, err
	}
	return cluster.Run(ctx, agent, append([]string{"antrail"}, p.command...), stdout, stderr)
}
