package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/listing"
	"github.com/antrail/antrail/flow"
	"github.com/spf13/cobra"
)

// seedObjects are flags of examples that work in the repository.
const seedObjects = "--manifests control/testdata/seed --node k8s-node-control-plane"

// kinds are the kinds that get shows.
var kinds = []string{"policies", "services", "endpoints", "pods", "egresses", "trafficcontrols", "traceflows", "nodes", "watches"}

// shortKinds are other names of kinds.
var shortKinds = map[string]string{
	"policy": "policies", "networkpolicies": "policies", "networkpolicy": "policies", "netpol": "policies", "acnp": "policies", "annp": "policies",
	"clusternetworkpolicy": "policies", "clusternetworkpolicies": "policies", "antreanetworkpolicy": "policies",
	"service": "services", "svc": "services", "endpoint": "endpoints", "ep": "endpoints", "pod": "pods", "po": "pods", "egress": "egresses", "eg": "egresses",
	"trafficcontrol": "trafficcontrols", "tc": "trafficcontrols", "traceflow": "traceflows", "tf": "traceflows", "node": "nodes", "no": "nodes", "watch": "watches",
}

// kindNamed is a kind by one of its names.
func kindNamed(name string) string {
	name = strings.ToLower(name)
	return cmp.Or(shortKinds[name], name)
}

// kindAndNames are the arguments of get: KIND NAME... or KIND/NAME.
func kindAndNames(args []string) (kind string, names []string) {
	kind, name, together := strings.Cut(args[0], "/")
	if together {
		names = []string{name}
	}
	return kindNamed(kind), append(names, args[1:]...)
}

// knownKind refuses an unknown kind.
func knownKind(_ *cobra.Command, args []string) error {
	if kind, _ := kindAndNames(args); !slices.Contains(kinds, kind) {
		return fmt.Errorf("there is nothing called %q%s; there are %s", args[0], flow.Suggest(args[0], kinds), strings.Join(kinds, ", "))
	}
	return nil
}

// watchEvery is the time between two polls of a watch.
const watchEvery = time.Second

// getFlags are the flags of get.
type getFlags struct {
	from       source
	list       listing.Options
	all, watch bool
}

func getCommand() *cobra.Command {
	var g getFlags
	c := &cobra.Command{
		Use:   "get " + strings.Join(kinds, "|") + " [NAME...]",
		Short: "Print the objects that the entries come from",
		Long: `Print the policies, Services, endpoints, pods, Egresses, TrafficControls or Traceflows of the Node: what each has in
the switch, what its entries have counted, and its state: installed, pending and what it waits for, or refused and why.
An object whose edit is refused stays as it was: installed, edit refused: FILE:LINE and why. Flags and forms are those of
kubectl get. The singular of a kind (policy), kubectl's short names (svc, netpol) and KIND/NAME work, too.

Without -n the objects of all namespaces are shown, as with -A. A NAME may be NAMESPACE/NAME.

With -o wide, policies are shown rule by rule, each with its sessions (the connections that it allowed, or the packets
that it refused), packets and bytes; Services endpoint by endpoint. HITS are the packets for which a Service's group
chose an endpoint, mostly the first of each connection. WEIGHT is that of the endpoint's bucket, 0 if it has none.
Traceflows are shown observation by observation.

Nodes are those of the cluster, with those that do not answer although packets go there. Watches are those of the
Kubernetes API: what each holds, and whether that may be old, or the kind is absent.

JSONPath takes the object, if one NAME is given, and {"items": [...]} otherwise; --sort-by takes a field of an object.
With --watch, an object is printed again whenever a column other than a counter changes.`,
		Example: "  antrail get pods --node node-a\n  antrail get policies -o wide " + seedObjects + "\n  antrail get services -o yaml " + seedObjects +
			"\n  antrail get endpoints -n default --sort-by=.object " + seedObjects +
			"\n  antrail get pods -l app=web -o 'jsonpath={.items[*].ips[0]}' --node node-a " + webApp +
			"\n  antrail get pods -w --node node-a",
		Args: cobra.MatchAll(atLeast("what to get"), knownKind),
	}
	g.from.addTo(c)
	f := c.Flags()
	f.StringVarP(&g.list.Namespace, "namespace", "n", "", "only objects of this namespace")
	f.BoolVarP(&g.all, "all-namespaces", "A", false, "objects of all namespaces, and those of none (the default)")
	f.StringVarP(&g.list.Selector, "selector", "l", "", "only objects with these labels, as kubectl takes them: app=web,tier!=db")
	f.StringVar(&g.list.SortBy, "sort-by", "", "order by this field of the objects, a JSONPath: .packets")
	f.BoolVar(&g.list.NoHeaders, "no-headers", false, "without the line of columns")
	f.BoolVarP(&g.watch, "watch", "w", false, "go on with objects that change, until Ctrl-C")
	f.Lookup("output").Usage = "text, wide, name, json, yaml or jsonpath=TEMPLATE"
	c.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	c.RunE = func(c *cobra.Command, args []string) error { return g.run(c, args) }
	return c
}

// run prints the objects.
func (g *getFlags) run(c *cobra.Command, args []string) error {
	g.list.Kind, g.list.Names = kindAndNames(args)
	g.list.Output = g.from.output
	view, err := listing.New(g.list)
	if err != nil {
		return usageError{err}
	}
	client, err := g.from.client(c.ErrOrStderr())
	if err != nil {
		return err
	}
	ask := func(ctx context.Context) (*api.Listing, error) {
		return client.List(ctx, "/"+g.list.Kind, view.Wide())
	}
	if g.watch {
		return view.Watch(c.Context(), c.OutOrStdout(), ask, listing.Every(watchEvery))
	}
	l, err := ask(c.Context())
	if err != nil {
		return err
	}
	return view.Print(c.OutOrStdout(), l)
}

func explainCommand() *cobra.Command {
	var from source
	c := &cobra.Command{
		Use:   "explain LINE|KIND/NAMESPACE/NAME|COOKIE",
		Short: "Print which object an entry comes from, or which entries an object has",
		Long: `Print the objects that want a flow entry, each with its field and the name of the policy rule. LINE is the entry
as a dump prints it, or the part that identifies it: table, priority and match. Lines of dump-groups or dump-meters
work, too.

KIND/NAMESPACE/NAME, or KIND/NAME for objects without namespace, prints all entries, groups and meters of
an object. Dumps and traces name the objects themselves with --explain.

COOKIE, or COOKIE/MASK, prints the entries with a cookie, and their counters. Entries that another controller
installed (antrail vswitchd) have no objects: drops, traces and dumps name their cookie instead.`,
		Example: "  antrail explain 'table=L3Forwarding, priority=200,ip,reg0=0x200/0x200,nw_dst=10.10.0.24' " + seedObjects +
			"\n  antrail explain Service/default/sample-clusterip " + seedObjects +
			"\n  antrail explain 0x1030000000000 --socket /run/antrail/switch.sock",
		Args: exactly("LINE, KIND/NAMESPACE/NAME or COOKIE"),
	}
	from.addTo(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		q := from.query()
		q.Set("what", args[0])
		return from.get(c, "/explain", q)
	}
	return c
}
