//go:build linux

package main

import (
	"io"

	"github.com/antrail/antrail/agent"
	"github.com/spf13/cobra"
)

// Commands that ask several agents: --socket and --node may be given again.

// several are the values of both flags.
type several struct{ sockets, nodes []string }

// addTo lets the flags of a source be given again. note ends their help.
func (s *several) addTo(c *cobra.Command, from *source, note string) {
	for name, to := range map[string]*again{"socket": {&from.socket, &s.sockets}, "node": {&from.node, &s.nodes}} {
		f := c.Flags().Lookup(name)
		f.Value = to
		f.Usage += note
	}
}

// given says whether one of them was given again.
func (s *several) given() bool { return len(s.sockets) > 1 || len(s.nodes) > 1 }

// clients are the agents, like one. What is wrong with manifests is told to problems.
func (s *several) clients(one source, problems io.Writer) (all []*agent.Client, err error) {
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

// again is a flag that may be given again: it holds the last value, and all.
type again struct {
	last *string
	all  *[]string
}

// String is the last value. It implements pflag.Value, as the others do.
func (a *again) String() string {
	if a.last == nil {
		return ""
	}
	return *a.last
}

// Set takes one more value.
func (a *again) Set(v string) error {
	*a.last, *a.all = v, append(*a.all, v)
	return nil
}

// Type is what help shows.
func (a *again) Type() string { return "string" }
