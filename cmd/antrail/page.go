package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/antrail/antrail/agent/answer"
	"github.com/spf13/cobra"
)

func pageCommand() *cobra.Command {
	var from source
	var agents several
	var address, plots string
	c := &cobra.Command{
		Use:   "page",
		Short: "Print the URL of the page of the switch, or serve that page",
		Long: `Print the URL of the page on which a browser shows the switch: the pipeline as a map with live rates,
tables with their entries and the objects behind them, packets that walk the map, drops, connections, pods
and Nodes. An agent serves it if its configuration has page.address.

The URL lets one browser in, once; print another for the next. With --serve this command serves the page itself
until Ctrl-C: of any agent whose socket it may open, of a Node of a lab, or of files. It also serves the page of a
switch that another controller drives (antrail vswitchd), with cookies instead of objects. Of several agents
(--socket or --node again), the page shows one at a time, and the whole way of a packet between their Nodes.`,
		Example: "  antrail page\n  antrail page --serve 127.0.0.1:8080 --node node-a --node node-b\n  antrail page --serve 127.0.0.1:8080 " + nodeFiles +
			"\n  antrail page --serve 127.0.0.1:8080 --socket /run/antrail/switch.sock",
		Args: noArgs,
	}
	from.addTo(c)
	agents.addTo(c, &from, "; with --serve, may be given several times")
	c.Flags().MarkHidden("output") // a URL has one form
	c.Flags().StringVar(&address, "serve", "", "loopback IP address and port to serve the page at; port 0 is any free port")
	c.Flags().StringVar(&plots, "plots", "", "directory of antrail bench --save to show, with --serve")
	c.RunE = func(c *cobra.Command, _ []string) error {
		tell := func(url string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), url)
			return err
		}
		if address != "" {
			clients, err := agents.clients(from, c.ErrOrStderr())
			if err != nil {
				return err
			}
			return (&answer.PageServer{Agents: clients, Address: address, Plots: plots, Invite: tell}).Run(c.Context())
		}
		if agents.given() {
			return usageError{errors.New("several agents have no common page: use --serve ADDRESS to serve one")}
		}
		offline := slices.ContainsFunc([]string{"flows", "manifests", "program", "plots"}, c.Flags().Changed)
		if offline {
			return usageError{errors.New("files have no page: use --serve ADDRESS to serve one")}
		}
		socket, err := from.agentSocket()
		if err != nil {
			return err
		}
		url, err := answer.PageURL(socket)
		if err != nil {
			return err
		}
		return tell(url)
	}
	return c
}
