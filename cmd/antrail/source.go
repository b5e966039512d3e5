package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent/answer"
	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/manifest"
	"github.com/antrail/antrail/tables/programs"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// socketEnv is the environment variable for the default of --socket.
const socketEnv = "ANTRAIL_SOCKET"

// source is the source of answers: a running agent, a switch without one, or files.
type source struct {
	socket string
	node   string // a Node of a lab, in place of socket; the Node of manifests
	lab    string
	offline
	output string
}

// offline is a pipeline without a running switch: flow files, manifests, or a program on a
// made-up Node.
type offline struct {
	files     pipeline.Files
	manifests string
	program   string
	tunnel    string
}

// addTo adds the flags that choose the source and the form of the output.
func (s *source) addTo(c *cobra.Command) {
	s.addAgentTo(c)
	s.offline.addTo(c)
	c.MarkFlagsMutuallyExclusive("node", "flows")
	c.MarkFlagsMutuallyExclusive("node", "program")
	if hasSwitch {
		c.Flags().Lookup("node").Usage += "; with --manifests, the Node to look at"
		for _, files := range []string{"flows", "manifests", "program"} {
			c.MarkFlagsMutuallyExclusive("socket", files)
		}
	}
}

// addAgentTo is addTo for commands that files cannot answer.
func (s *source) addAgentTo(c *cobra.Command) {
	s.addSocketTo(c)
	c.Flags().StringVarP(&s.output, "output", "o", "text", forms)
}

// addSocketTo adds the flags that choose the agent or switch. If no switch can run here,
// --node is for manifests.
func (s *source) addSocketTo(c *cobra.Command) {
	f := c.Flags()
	if !hasSwitch {
		f.StringVar(&s.node, "node", "", "the Node to look at, with --manifests")
		return
	}
	f.StringVar(&s.socket, "socket", defaultSocket(), "unix socket of the agent, or of a switch; "+socketEnv+" sets the default")
	f.StringVar(&s.node, "node", "", "ask the agent of this Node of a lab")
	addLabFlag(c, &s.lab)
	c.MarkFlagsMutuallyExclusive("socket", "node")
}

func addLabFlag(c *cobra.Command, id *string) {
	c.Flags().StringVar(id, "lab", "", "the lab's ID, if there are several")
}

// forms are the forms of output.
const forms = "text, json or yaml"

// addTo adds the flags that name files.
func (s *offline) addTo(c *cobra.Command) {
	f, files := c.Flags(), &s.files
	f.StringVar(&files.Flows, "flows", "", "file of flow entries, as ovs-ofctl dump-flows prints them, instead of an agent")
	const beside = ", with --flows (default: the file of its name beside it)"
	f.StringVar(&files.Groups, "groups", "", "file of groups"+beside)
	f.StringVar(&files.Meters, "meters", "", "file of meters"+beside)
	f.StringVar(&files.Ports, "ports", "", "file of port numbers, names and addresses, as ovs-ofctl dump-ports-desc prints them"+beside)
	for _, name := range []string{"flows", "groups", "meters", "ports"} {
		c.MarkFlagFilename(name)
	}
	f.StringVar(&s.manifests, "manifests", "", "file or directory of Kubernetes and Antrea objects (with --node), instead of an agent")
	f.StringVar(&s.program, "program", "", "a program by its name, on a made-up Node: "+strings.Join(programs.Names(), ", ")+"; instead of an agent")
	c.MarkFlagsMutuallyExclusive("flows", "manifests", "program")
	f.StringVar(&s.tunnel, "tunnel-port", config.DefaultTunnel, "name of the tunnel port, with --flows or --manifests")
}

// source is the flow files, manifests or program that the flags name; nil if they name
// none. Problems with manifests are written to w.
func (s *offline) source(node string, w io.Writer) (pipeline.Source, error) {
	if s.files.Flows != "" {
		return s.files.Beside(), nil
	}
	if s.files != (pipeline.Files{}) {
		return nil, usageError{errors.New("--groups, --meters and --ports need --flows")}
	}
	if s.program != "" {
		_, err := programs.Named(s.program)
		return pipeline.Program{Name: s.program}, err
	}
	if s.manifests == "" {
		return nil, nil
	}
	if node == "" {
		err := errors.New("--manifests needs --node: each Node has entries of its own")
		if there, unread := pipeline.ManifestNodes(s.manifests); unread == nil {
			err = fmt.Errorf("%w; there are %s", err, strings.Join(there, ", "))
		}
		return nil, usageError{err}
	}
	report := func(p manifest.Problem) { fmt.Fprintln(w, p.Error()) }
	return pipeline.Manifests{Path: s.manifests, Node: node, Report: report}, nil
}

func defaultSocket() string {
	if s := os.Getenv(socketEnv); s != "" {
		return s
	}
	return config.DefaultSocket
}

// client is a client of the source. Problems with manifests are written to problems.
func (s *source) client(problems io.Writer) (*api.Client, error) {
	from, err := s.offline.source(s.node, problems)
	if err != nil {
		return nil, err
	}
	if from != nil {
		return answer.Offline(from, s.tunnel)
	}
	socket, err := s.agentSocket()
	if err != nil {
		return nil, err
	}
	return answer.Connect(context.Background(), socket)
}

// print asks a question and prints the answer.
func (s *source) print(c *cobra.Command, ask func(*api.Client) ([]byte, error)) error {
	if !slices.Contains([]string{"text", "json", "yaml"}, s.output) {
		return usageError{errors.New("--output is " + forms)}
	}
	client, err := s.client(c.ErrOrStderr())
	if err != nil {
		return err
	}
	b, err := ask(client)
	if err == nil && s.output == "yaml" {
		b, err = yaml.JSONToYAML(b)
	}
	if err != nil {
		return err
	}
	_, err = c.OutOrStdout().Write(b)
	return err
}

// get prints what a path of the API answers.
func (s *source) get(c *cobra.Command, path string, q url.Values) error {
	return s.print(c, func(client *api.Client) ([]byte, error) { return client.Get(c.Context(), path, q) })
}

// query are the parameters of every request.
func (s *source) query() url.Values {
	if s.output == "text" {
		return url.Values{}
	}
	return url.Values{"format": {"json"}}
}

// Commands that ask several agents take --socket and --node several times.

// several are the values of both flags.
type several struct{ sockets, nodes []string }

// addTo makes the flags of a source repeatable. note is added to their help.
func (s *several) addTo(c *cobra.Command, from *source, note string) {
	for name, to := range map[string]*again{"socket": {&from.socket, &s.sockets}, "node": {&from.node, &s.nodes}} {
		if f := c.Flags().Lookup(name); f != nil {
			f.Value = to
			f.Usage += note
		}
	}
}

// given says whether a flag was repeated.
func (s *several) given() bool { return len(s.sockets) > 1 || len(s.nodes) > 1 }

// clients returns a client for each agent. Problems with manifests are written to problems.
func (s *several) clients(one source, problems io.Writer) (all []*api.Client, err error) {
	for i := range max(1, len(s.sockets), len(s.nodes)) {
		if i < len(s.sockets) {
			one.socket = s.sockets[i]
		}
		if i < len(s.nodes) {
			one.node = s.nodes[i]
		}
		client, err := one.client(problems)
		if err != nil {
			return nil, err
		}
		all = append(all, client)
	}
	return all, nil
}

// again is a repeatable flag: it has the last value, and all.
type again struct {
	last *string
	all  *[]string
}

// String is the last value. The methods implement pflag.Value.
func (a *again) String() string {
	if a.last == nil {
		return ""
	}
	return *a.last
}

// Set adds a value.
func (a *again) Set(v string) error {
	*a.last, *a.all = v, append(*a.all, v)
	return nil
}

// Type is the value's name in help.
func (a *again) Type() string { return "string" }
