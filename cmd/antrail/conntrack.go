package main

import (
	"net/url"

	"github.com/antrail/antrail/agent/api"
	"github.com/spf13/cobra"
)

// connectionFlags are the flags that choose connections, under the names of the
// API's parameters.
type connectionFlags map[string]*string

var connectionFilters = []struct{ name, usage string }{
	{"zone", "only this zone"},
	{"address", "only connections of an address, or of a range (10.10.0.0/24): either end, before or after NAT"},
	{"port", "only connections of a TCP, UDP or SCTP port: either end, before or after NAT"},
	{"state", "only connections in this state of TCP or SCTP, as in protoinfo=(state=…)"},
	{"mark", "only connections with this ct_mark: VALUE or VALUE/MASK"},
}

func (f *connectionFlags) addTo(c *cobra.Command) {
	*f = connectionFlags{}
	for _, x := range connectionFilters {
		(*f)[x.name] = c.Flags().String(x.name, "", x.usage)
	}
}

// setParameters turns the flags into parameters.
func (f connectionFlags) setParameters(q url.Values) {
	for name, value := range f {
		if *value != "" {
			q.Set(name, *value)
		}
	}
}

func flushConntrackCommand() *cobra.Command {
	var from source
	var filter connectionFlags
	c := &cobra.Command{
		Use:   "flush-conntrack",
		Short: "Remove connections, as ovs-appctl dpctl/flush-conntrack does",
		Long: `Remove the connections that match all filters, and print how many they were. Without a filter all are removed:
packets of running connections then begin new ones, and connections with NAT may break.`,
		Example: "  antrail flush-conntrack --address 10.10.0.26 --port 80\n  antrail flush-conntrack --node node-a --zone 65520 --state syn_sent",
		Args:    noArgs,
	}
	from.addAgentTo(c)
	filter.addTo(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		q := from.query()
		filter.setParameters(q)
		return from.print(c, func(client *api.Client) ([]byte, error) {
			return client.Delete(c.Context(), "/conntrack", q)
		})
	}
	return c
}

func conntrackCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "conntrack",
		Short:   "Show the connection table as a whole",
		Example: "  antrail conntrack stats",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(conntrackStatsCommand())
	return c
}

func conntrackStatsCommand() *cobra.Command {
	var from source
	c := &cobra.Command{
		Use:   "stats",
		Short: "Print the connection table's counters",
		Long: `Print how full the connection table is, in all, by zone and by port, and its counters: connections made and
expired, and packets dropped because their connection could not be made, by reason and by port. The names are those of
the agent's metrics, without the prefix antrail_.`,
		Example: "  antrail conntrack stats\n  antrail conntrack stats --node node-a -o json\n  antrail conntrack stats " + seedFiles,
		Args:    noArgs,
	}
	from.addTo(c)
	c.RunE = func(c *cobra.Command, _ []string) error { return from.get(c, "/conntrack/stats", from.query()) }
	return c
}
