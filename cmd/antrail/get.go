//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/antrail/antrail/agent"
	"github.com/antrail/antrail/flow"
	"github.com/spf13/cobra"
)

// seedObjects are flags of examples that work in the repository.
const seedObjects = "--manifests control/testdata/seed --node k8s-node-control-plane"

// kinds are what get shows.
var kinds = []string{"policies", "services", "pods", "egresses", "trafficcontrols", "nodes", "watches"}

// shortKinds are other names of kinds.
var shortKinds = map[string]string{
	"policy": "policies", "networkpolicies": "policies", "networkpolicy": "policies", "netpol": "policies", "acnp": "policies", "annp": "policies",
	"service": "services", "svc": "services", "pod": "pods", "po": "pods", "egress": "egresses", "eg": "egresses",
	"trafficcontrol": "trafficcontrols", "tc": "trafficcontrols", "node": "nodes", "no": "nodes", "watch": "watches",
}

// kindNamed is a kind by one of its names.
func kindNamed(name string) string { return cmp.Or(shortKinds[name], name) }

// knownKind refuses a kind that get does not show.
func knownKind(_ *cobra.Command, args []string) error {
	if !slices.Contains(kinds, kindNamed(args[0])) {
		return fmt.Errorf("there is nothing called %q%s; there are %s", args[0], flow.Suggest(args[0], kinds), strings.Join(kinds, ", "))
	}
	return nil
}

func getCommand() *cobra.Command {
	from := source{wide: true}
	c := &cobra.Command{
		Use:   "get policies|services|pods|egresses|trafficcontrols|nodes|watches",
		Short: "Print the objects that the entries come from",
		Long: `Print the policies, Services, pods, Egresses or TrafficControls of the Node: what each has in the
switch, what its entries have counted, and how far it has come: installed, pending and what it waits
for, or refused and why. An object whose edit is refused stays as it was: installed, edit refused: FILE:LINE and
why. With -o wide, policies are shown rule by rule, each with the connections that it allowed or
the packets that it refused (sessions), packets and bytes. Nodes are those of the cluster, and which of them do not
answer though packets go there. Watches are those of the Kubernetes API: what each
holds, and whether that may be old, or the kind is absent. One of a kind (policy), and the short names of kubectl (svc,
netpol), do as well.`,
		Example: "  antrail get pods --node node-a\n  antrail get policies -o wide " + seedObjects + "\n  antrail get services -o yaml " + seedObjects +
			"\n  antrail get trafficcontrols " + seedObjects,
		Args:      cobra.MatchAll(exactly("what to get"), knownKind),
		ValidArgs: kinds,
	}
	from.addTo(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return from.print(c, func(client *agent.Client) ([]byte, error) {
			return client.Get(c.Context(), "/"+kindNamed(args[0]), from.query())
		})
	}
	return c
}

func explainCommand() *cobra.Command {
	var from source
	c := &cobra.Command{
		Use:   "explain LINE|KIND/NAMESPACE/NAME",
		Short: "Print which object an entry comes from, or which entries an object has",
		Long: `Print what wants a flow entry: each object, the field of it and the name of the policy rule. LINE is
the entry as a dump prints it, or as much of it as names it: table, priority and match. A line of
dump-groups or dump-meters is explained too.

KIND/NAMESPACE/NAME, or KIND/NAME for objects without namespace, prints all entries, groups and meters of
an object. Dumps and traces name the objects themselves with --explain.`,
		Example: "  antrail explain 'table=L3Forwarding, priority=200,ip,reg0=0x200/0x200,nw_dst=10.10.0.24' " + seedObjects +
			"\n  antrail explain Service/default/sample-clusterip " + seedObjects,
		Args: exactly("LINE or KIND/NAMESPACE/NAME"),
	}
	from.addTo(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return from.print(c, func(client *agent.Client) ([]byte, error) {
			q := from.query()
			q.Set("what", args[0])
			return client.Get(c.Context(), "/explain", q)
		})
	}
	return c
}
