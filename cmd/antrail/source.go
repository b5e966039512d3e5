package main

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/lab"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// socketEnv names the agent's socket where --socket does not.
const socketEnv = "ANTRAIL_SOCKET"

// source is where the answers come from: a running agent, or flow files.
type source struct {
	socket string
	node   string // a Node of a lab, in place of socket
	lab    string
	files  agent.Files
	tunnel string
	output string
}

// addTo gives a command the flags that choose its source and the form of its
// output.
func (s *source) addTo(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.socket, "socket", defaultSocket(), "unix socket of the agent; "+socketEnv+" sets the default")
	f.StringVar(&s.node, "node", "", "ask the agent of this Node of a lab")
	addLabFlag(c, &s.lab)
	addFiles(c, &s.files)
	c.MarkFlagsMutuallyExclusive("socket", "node", "flows")
	f.StringVar(&s.tunnel, "tunnel-port", agent.DefaultTunnel, "name of the tunnel port, with --flows")
	f.StringVarP(&s.output, "output", "o", "text", "text, json or yaml")
}

// addFiles gives a command the flags that name flow files.
func addFiles(c *cobra.Command, files *agent.Files) {
	f := c.Flags()
	f.StringVar(&files.Flows, "flows", "", "file of flow entries, as ovs-ofctl dump-flows prints them; no agent is asked then")
	const beside = ", with --flows (default: the file of its name beside it)"
	f.StringVar(&files.Groups, "groups", "", "file of groups"+beside)
	f.StringVar(&files.Meters, "meters", "", "file of meters"+beside)
	f.StringVar(&files.Ports, "ports", "", "file of port numbers, names and addresses, as ovs-ofctl dump-ports-desc prints them"+beside)
	for _, name := range []string{"flows", "groups", "meters", "ports"} {
		c.MarkFlagFilename(name)
	}
}

func defaultSocket() string {
	if s := os.Getenv(socketEnv); s != "" {
		return s
	}
	return agent.DefaultSocket
}

// client is who answers.
func (s *source) client() (*agent.Client, error) {
	if s.files.Flows != "" {
		return agent.Offline(s.files.Beside(), s.tunnel)
	}
	if s.files != (agent.Files{}) {
		return nil, usageError{errors.New("--groups, --meters and --ports go with --flows")}
	}
	if s.node == "" {
		return agent.NewClient(s.socket), nil
	}
	l, err := lab.Find(lab.StateDir(), s.lab)
	if err != nil {
		return nil, err
	}
	if _, err := l.Namespace(s.node); err != nil {
		return nil, err
	}
	return agent.NewClient(l.Socket(s.node)), nil
}

// print asks a question and prints the answer.
func (s *source) print(ctx context.Context, w io.Writer, ask func(*agent.Client) ([]byte, error)) error {
	switch s.output {
	case "text", "json", "yaml":
	default:
		return usageError{errors.New("--output is text, json or yaml")}
	}
	c, err := s.client()
	if err != nil {
		return err
	}
	b, err := ask(c)
	if err == nil && s.output == "yaml" {
		b, err = yaml.JSONToYAML(b)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// query are the parameters that every question takes.
func (s *source) query() url.Values {
	if s.output == "text" {
		return url.Values{}
	}
	return url.Values{"format": {"json"}}
}

// onTerminal says whether output goes to a person.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
