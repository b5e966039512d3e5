package main

import (
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// webApp are flags of examples that work in the repository.
const webApp = "--manifests examples/web-app"

// why is the command's flags.
type why struct {
	from            source
	agents          several
	request         api.WhyRequest
	udp, sctp, icmp bool
	walk            bool
}

func whyCommand() *cobra.Command {
	var w why
	c := &cobra.Command{
		Use:   "why FROM TO",
		Short: "Say whether one end may connect to another, and which policy decides it",
		Long: `Say in one sentence whether FROM may open a connection to TO, and which policy and rule decide that, or what else
prevents it. Below that, it says where the first packet ends, what was counted so far (of the entry where it ends, and of
such connections), and what to do next; with --walk also the packet's walk, table by table. Nothing is sent, counted or
learned, and connections are looked up as they are.

FROM is namespace/pod, an address, external (some address outside the cluster) or node (the Node itself).
TO is one of these, or svc:namespace/name, with :PORT behind it: a number, or a name that the Pod or the
Service has. A Service with one port needs none, and has the protocol of its port. All endpoints of a Service
must be allowed.

A Node decides what its own pods send and receive. The walk goes on at another Node of a lab (--node) or of manifests,
and at one whose agent is given, too (--socket, given again). If a Node that decides was not asked, the answer of
the others is undecided. Packets that a TrafficControl or an application-layer policy leads through a tap go on as if
they came back unchanged. Packets from outside enter at the first --node.

Entries that another controller installed (antrail vswitchd) have no objects. Then FROM and TO are addresses
or ports of the switch: ADDRESS, ADDRESS:PORT or the name of a port, with ,MAC and @PORT behind it where the
switch cannot tell them. The answer names the entry that decides, with its table and cookie.

It exits with 0 if the connection is allowed, with 1 if it is denied, and with 2 if that is undecided or there is
no answer.`,
		Example: "  antrail why default/client-a default/web-a:80 " + webApp + "\n  antrail why default/client-b svc:default/sample-clusterip " + webApp +
			"\n  antrail why 192.168.77.1 192.168.77.102:30004 --node node-a " + webApp + "\n  antrail why --udp default/client-a 10.10.0.10:53 --node node-a\n  antrail why --walk default/client-a default/web-a:80 " + webApp +
			"\n  antrail why 10.9.0.1@veth0 10.9.0.2:80 --socket /run/antrail/switch.sock",
		Args: exactly("FROM", "TO"),
	}
	f := c.Flags()
	w.from.addAgentTo(c)
	f.StringVar(&w.from.manifests, "manifests", "", "file or directory of Kubernetes and Antrea objects, instead of an agent")
	f.StringVar(&w.from.tunnel, "tunnel-port", config.DefaultTunnel, "name of the tunnel port, with --manifests")
	if hasSwitch {
		c.MarkFlagsMutuallyExclusive("socket", "manifests")
	}
	w.agents.addTo(c, &w.from, "; may be given several times")
	f.BoolVar(&w.udp, "udp", false, "ask for UDP, not TCP")
	f.BoolVar(&w.sctp, "sctp", false, "ask for SCTP")
	f.BoolVar(&w.icmp, "icmp", false, "ask for an ICMP echo request")
	c.MarkFlagsMutuallyExclusive("udp", "sctp", "icmp")
	f.BoolVarP(&w.walk, "walk", "v", false, "also print the walk, table by table, with the object behind each entry")
	f.BoolVar(&w.request.IPv6, "ipv6", false, "IPv6 addresses of ends that have both")
	f.Uint16Var(&w.request.SourcePort, "source-port", 0, "port of the client (default 40000)")
	c.RunE = func(c *cobra.Command, args []string) error {
		w.request.From, w.request.To = args[0], args[1]
		return w.answer(c)
	}
	return c
}

// answer asks and prints.
func (w *why) answer(c *cobra.Command) error {
	if !slices.Contains([]string{"text", "json", "yaml"}, w.from.output) {
		return usageError{errors.New("--output is " + forms)}
	}
	for name, on := range map[string]bool{"udp": w.udp, "sctp": w.sctp, "icmp": w.icmp} {
		if on {
			w.request.Protocol = name
		}
	}
	agents, err := w.clients(c.ErrOrStderr())
	if err != nil {
		return codedError{exitUsage, err}
	}
	a, err := api.Why(c.Context(), agents, &w.request)
	if err == nil {
		err = w.print(c, a)
	}
	switch {
	case err != nil:
		return codedError{exitUsage, err}
	case a.Undecided:
		return codedError{code: exitUsage, error: errUndecided}
	case !a.Allowed:
		return codedError{code: exitFailed}
	}
	return nil
}

var errUndecided = errors.New("undecided: a Node that decides was not asked")

// clients are the agents, or the Nodes of manifests. A given Node of a lab or of manifests
// is asked first, and its other Nodes when a packet goes there.
func (w *why) clients(problems io.Writer) (all []*api.Client, err error) {
	if w.from.manifests != "" {
		problems = &once{to: problems, told: map[string]bool{}}
	}
	if len(w.agents.nodes) == 1 || w.from.manifests != "" && w.agents.nodes == nil {
		there, err := w.nodes()
		if err != nil {
			return nil, err
		}
		there = slices.DeleteFunc(there, func(n string) bool { return slices.Contains(w.agents.nodes, n) })
		w.agents.nodes = append(w.agents.nodes, there...)
	}
	return w.agents.clients(w.from, problems)
}

// nodes are the Nodes of the manifests, or of the lab.
func (w *why) nodes() ([]string, error) {
	if w.from.manifests != "" {
		return pipeline.ManifestNodes(w.from.manifests)
	}
	return nodesOfLab(w.from.lab)
}

func (w *why) print(c *cobra.Command, a *api.WhyAnswer) error {
	if w.from.output == "text" {
		err := a.WriteText(c.OutOrStdout())
		if err == nil && w.walk {
			err = a.WriteWalks(c.OutOrStdout())
		}
		return err
	}
	b, err := json.MarshalIndent(a, "", "  ")
	if err == nil && w.from.output == "yaml" {
		b, err = yaml.JSONToYAML(b)
	}
	if err == nil {
		_, err = c.OutOrStdout().Write(append(b, '\n'))
	}
	return err
}

// once writes each line once, because every Node reports the same problems with files.
type once struct {
	to   io.Writer
	told map[string]bool
}

// Write implements io.Writer for whole lines.
func (o *once) Write(b []byte) (int, error) {
	if o.told[string(b)] {
		return len(b), nil
	}
	o.told[string(b)] = true
	return o.to.Write(b)
}
