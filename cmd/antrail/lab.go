//go:build linux && !portable

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/lab/demo"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tunnel"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

func labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "A cluster of Nodes on this machine, in network namespaces",
		Long: `A lab is two Nodes with three pods each and a host outside, in network namespaces, with a real agent
per Node. It needs root and touches nothing of the machine's own network.`,
		Example: "  antrail lab up\n  antrail lab exec client-a -- ping -c 3 10.10.1.7\n  antrail lab down",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(labUpCommand(), labStatusCommand(), labExecCommand(), labUpgradeTestCommand(), labAttackTestCommand(), labDownCommand())
	return c
}

func labUpCommand() *cobra.Command {
	var o lab.Options
	c := &cobra.Command{
		Use:     "up",
		Short:   "Make a lab and start its agents",
		Example: "  antrail lab up\n  antrail lab up --driver afxdp\n  antrail lab up --tunnel vxlan\n  antrail lab up --encap-mode noEncap\n  antrail lab up --manifests examples/web-app\n  antrail lab up --flows-dir examples/two-nodes",
		Args:    noArgs,
	}
	c.Flags().IntVar(&o.Nodes, "nodes", 2, "Nodes, 1 or 2")
	c.Flags().BoolVar(&o.UnderlayOffloads, "underlay-offloads", true, "leave checksums and segments to the underlay, as to a card; if false, captures there show both done")
	addPipeline(c, &o)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if o.Nodes < 1 {
			return usageError{errors.New("--nodes must be 1 or 2")}
		}
		if err := checkOptions(&o); err != nil {
			return err
		}
		o.Progress = c.OutOrStdout()
		l, err := lab.Up(c.Context(), o)
		if err != nil {
			return err
		}
		if err := l.Status(c.Context()).Write(c.OutOrStdout()); err != nil {
			return err
		}
		return noteOthers(c.OutOrStdout(), l)
	}
	return c
}

// noteOthers says if there are other labs: commands then need --lab.
func noteOthers(w io.Writer, l *lab.Lab) error {
	all, err := lab.List(lab.StateDir())
	if err == nil && len(all) > 1 {
		_, err = fmt.Fprintf(w, "\nThere are %d labs now: commands for this one need --lab %s, and lab down ends one.\n", len(all), l.State.ID)
	}
	return err
}

func labStatusCommand() *cobra.Command {
	var id, output string
	c := &cobra.Command{
		Use:     "status",
		Short:   "Print the Nodes and pods of a lab",
		Example: "  antrail lab status\n  antrail lab status -o json",
		Args:    noArgs,
	}
	addLabFlag(c, &id)
	c.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	c.RunE = func(c *cobra.Command, _ []string) error {
		l, err := lab.Find(lab.StateDir(), id)
		if err != nil {
			return err
		}
		return writeStatus(c.OutOrStdout(), l.Status(c.Context()), output)
	}
	return c
}

// writeStatus prints a lab's status in a form.
func writeStatus(w io.Writer, s *lab.Status, form string) (err error) {
	var b []byte
	switch form {
	case "table":
		return s.Write(w)
	case "json":
		b, err = json.MarshalIndent(s, "", "  ")
		b = append(b, '\n')
	case "yaml":
		b, err = yaml.Marshal(s)
	default:
		err = usageError{errors.New("--output is table, json or yaml")}
	}
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

func labExecCommand() *cobra.Command {
	var id string
	c := &cobra.Command{
		Use:     "exec POD -- COMMAND [ARG...]",
		Short:   "Run a command in a pod, a Node or the outside host",
		Example: "  antrail lab exec client-a -- ping -c 3 10.10.1.7\n  antrail lab exec node-a -- ip route",
		Args:    atLeast("a POD, a Node or outside", "the COMMAND"),
	}
	addLabFlag(c, &id)
	c.Flags().SetInterspersed(false) // the command's flags are its own
	c.RunE = func(_ *cobra.Command, args []string) error {
		l, err := lab.Find(lab.StateDir(), id)
		if err != nil {
			return err
		}
		command := args[1:]
		if command[0] == "--" {
			command = command[1:]
		}
		return l.Exec(args[0], command)
	}
	return c
}

func labDownCommand() *cobra.Command {
	var id string
	c := &cobra.Command{
		Use:     "down",
		Short:   "Stop a lab and remove what is left of dead ones",
		Example: "  antrail lab down",
		Args:    noArgs,
	}
	addLabFlag(c, &id)
	c.RunE = func(c *cobra.Command, _ []string) error {
		doomed, err := lab.Doomed(lab.StateDir(), id)
		if err != nil {
			return err
		}
		if len(doomed) == 0 {
			fmt.Fprintln(c.OutOrStdout(), "no lab is up")
		}
		var errs []error
		for _, l := range doomed {
			l.SetProgress(c.OutOrStdout())
			errs = append(errs, l.Down())
		}
		return errors.Join(errs...)
	}
	return c
}

// checkOptions makes an invalid option of a lab a usage error.
func checkOptions(o *lab.Options) error {
	if err := o.Check(); err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	return nil
}

// addPipeline adds the flags for a lab's pipeline and its pods' ports.
func addPipeline(c *cobra.Command, o *lab.Options) {
	c.Flags().StringVar(&o.Manifests, "manifests", "", "file or directory of Kubernetes and Antrea objects, in place of the built-in ones; it is watched")
	c.Flags().StringVar(&o.FlowsDir, "flows-dir", "", "directory with NODE.flows, NODE.groups and NODE.meters, in place of objects")
	c.Flags().StringVar(&o.Driver, "driver", lab.DefaultDriver(), "of the pods' ports: auto, afxdp or afpacket")
	c.Flags().StringVar(&o.Tunnel, "tunnel", tunnel.KindGeneve.String(), "between the Nodes: geneve, vxlan or gre")
	c.Flags().StringVar(&o.TunnelDriver, "tunnel-driver", lab.DefaultTunnelDriver(), "of the tunnel: kernel, afxdp or auto")
	c.Flags().StringVar((*string)(&o.Uplink), "uplink", string(lab.UplinkPlain), "what the Nodes' eth0 is: "+lab.UplinkKinds)
	c.Flags().StringVar(&o.EncapMode, "encap-mode", tables.Encap.String(), "how packets go to other Nodes: encap, noEncap or hybrid")
	c.Flags().StringVar(&o.Offload, "offload", lab.DefaultOffload(), "of established connections to the kernel: auto or off")
	c.MarkFlagsMutuallyExclusive("manifests", "flows-dir")
}

func demoCommand() *cobra.Command {
	var o lab.Options
	c := &cobra.Command{
		Use:   "demo",
		Short: "Make a lab, check it with real traffic, and remove it",
		Long: `Make a lab, check it with real sockets in its pods, print one line per check, and remove the lab again, also
when interrupted. It exits with 0 only if every check holds. It needs root.`,
		Example: "  antrail demo\n  antrail demo --driver afxdp",
		Args:    noArgs,
	}
	addPipeline(c, &o)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkOptions(&o); err != nil {
			return err
		}
		return demo.Run(c.Context(), o, c.OutOrStdout())
	}
	return c
}

// agentSocket is the socket of the agent or switch that the flags name.
func (s *source) agentSocket() (string, error) {
	if s.node == "" {
		return s.socket, nil
	}
	l, err := findLab(s.lab)
	if err != nil {
		return "", err
	}
	if err := hasNode(l, s.node); err != nil {
		return "", err
	}
	return l.Socket(s.node), nil
}

// hasNode refuses a Node that a lab does not have.
func hasNode(l *lab.Lab, name string) error {
	there := nodesOf(l)
	if slices.Contains(there, name) {
		return nil
	}
	return fmt.Errorf("lab %s has no Node %q%s; there are %s", l.State.ID, name, flow.Suggest(name, there), strings.Join(there, ", "))
}

// findLab finds the lab that --lab names, or the only lab, for --node.
func findLab(id string) (*lab.Lab, error) {
	l, err := lab.Find(lab.StateDir(), id)
	if errors.Is(err, lab.ErrNone) {
		err = hintedError{err, "--node names a Node of a lab. Without it, commands ask this machine's agent."}
	}
	return l, err
}

// nodesOfLab are the Nodes of a lab by their names.
func nodesOfLab(id string) ([]string, error) {
	l, err := findLab(id)
	if err != nil {
		return nil, err
	}
	return nodesOf(l), nil
}

func nodesOf(l *lab.Lab) (names []string) {
	for _, n := range l.Topology.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// labOf is the lab that the line names, or the only one; nil if there is none.
func labOf(c *cobra.Command) *lab.Lab {
	id, _ := c.Flags().GetString("lab") // "" for commands without the flag
	l, err := lab.Find(lab.StateDir(), id)
	if err != nil {
		return nil
	}
	return l
}

func labNames(*cobra.Command, []string) (all []string) {
	labs, _ := lab.List(lab.StateDir())
	for _, l := range labs {
		all = append(all, l.State.ID)
	}
	return all
}

// placeNames are the places for lab exec.
func placeNames(c *cobra.Command, _ []string) []string {
	l := labOf(c)
	if l == nil {
		return nil
	}
	return l.Names()
}
