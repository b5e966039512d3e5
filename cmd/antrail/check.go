//go:build linux && !portable

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/host/preflight"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// errCheckFailed is the error of a check that found a failure.
var errCheckFailed = errors.New("a check failed: see the lines that begin with fail")

func checkCommand() *cobra.Command {
	var from source
	var file, cniDir, cniBin string
	var live bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check whether a Node can run the agent, or with --live, whether the agent works",
		Long: `Check this Node before an agent starts on it: capabilities, the kernel, other networks and firewalls, names and
ports in use, MTU and sysctls. Each line is ok, warn or fail, with a remedy. If a line is fail, the exit code is 1.
With --config, names and addresses come from the agent's configuration, and the objects of its manifests are checked,
too.

With --live, ask the running agent: its state, and echo requests through the switch to the other Nodes' gateways and
to the Node's pods.`,
		Example: "  antrail check\n  antrail check --config /etc/antrail/agent.yaml -o json\n  antrail check --live --node node-a",
		Args:    noArgs,
	}
	from.addAgentTo(c)
	c.Flags().StringVar(&file, "config", "", "configuration file of the agent (YAML)")
	c.Flags().StringVar(&cniDir, "cni-dir", "/etc/cni/net.d", "where container runtimes look for networks")
	c.Flags().StringVar(&cniBin, "cni-bin-dir", "/opt/cni/bin", "where they look for CNI plugins")
	c.Flags().BoolVar(&live, "live", false, "ask the running agent")
	c.MarkFlagsMutuallyExclusive("live", "config")
	c.MarkFlagFilename("config")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if from.node != "" && !live {
			return usageError{errors.New("--node needs --live")}
		}
		var lines []preflight.Line
		var err error
		if live {
			lines, err = liveLines(c.Context(), &from, c)
		} else {
			lines, err = preflightLines(file, cniDir, cniBin)
		}
		if err != nil {
			return err
		}
		return from.printLines(c, lines)
	}
	return c
}

// preflightLines checks this Node.
func preflightLines(file, cniDir, cniBin string) ([]preflight.Line, error) {
	var err error
	conf := config.Defaults()
	conf.Gateway.MTU = 0 // it depends on the Node's address, which is not known
	if file != "" {
		if conf, err = config.Load(file); err != nil {
			return nil, err
		}
	}
	return append(preflight.Check(agent.Preflight(conf, cniDir, cniBin)), agent.ManifestLines(conf)...), nil
}

// liveLines asks a running agent.
func liveLines(ctx context.Context, from *source, c *cobra.Command) (lines []preflight.Line, err error) {
	client, err := from.client(c.ErrOrStderr())
	if err == nil {
		err = client.JSON(ctx, "/check", nil, &lines)
	}
	return lines, err
}

// printLines prints the results. If a check failed, it returns errCheckFailed.
func (s *source) printLines(c *cobra.Command, lines []preflight.Line) error {
	var err error
	switch s.output {
	case "text":
		err = preflight.Write(c.OutOrStdout(), lines)
	case "json", "yaml":
		var b []byte
		if b, err = json.MarshalIndent(lines, "", "  "); err == nil && s.output == "yaml" {
			b, err = yaml.JSONToYAML(b)
		}
		if err == nil {
			_, err = fmt.Fprintln(c.OutOrStdout(), string(b))
		}
	default:
		return usageError{errors.New("--output is " + forms)}
	}
	if err == nil && preflight.Worst(lines) == preflight.Fail {
		err = errCheckFailed
	}
	return err
}
