package main

import (
	"net/url"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/internal/terminal"
	"github.com/spf13/cobra"
)

// nodeFiles and seedFiles are flags of examples that work in the repository.
const (
	nodeFiles = "--flows examples/two-nodes/node-a.flows"
	seedFiles = "--flows examples/seed/seed.flows"
)

// dump is a command that prints one answer of the API.
type dump struct {
	use, short, long, path string
	args                   cobra.PositionalArgs
	flags                  func(*cobra.Command, *dumpFlags)
}

// dumpFlags are the flags that some dumps have.
type dumpFlags struct {
	names, noNames, noStats, sort, explain bool
	connections                            connectionFlags
	objects                                [len(objectFlags)]string
	version                                string
}

func (d *dumpFlags) addVersion(c *cobra.Command) {
	c.Flags().StringVarP(&d.version, "protocols", "O", flow.VersionNames[flow.OpenFlow15],
		"spell actions as "+strings.Join(flow.VersionNames, " or ")+"; the latter is what ovs-ofctl prints without -O: load: for set_field, resubmit for goto_table, no meters")
	c.Example += "\n  antrail " + c.Name() + " -O OpenFlow10 " + seedFiles
}

// objectFlags choose entries by their object. They are also parameters of the API.
var objectFlags = [...]struct{ name, usage string }{
	{"pod", "only entries that this Pod of the Node wants, as namespace/name"},
	{"service", "only entries that this Service wants, as namespace/name"},
	{"policy", "only entries that this policy wants, as namespace/name, or name of a policy without namespace"},
}

func (d *dumpFlags) addObjects(c *cobra.Command) {
	for i, f := range objectFlags {
		c.Flags().StringVar(&d.objects[i], f.name, "", f.usage)
	}
	c.MarkFlagsMutuallyExclusive("pod", "service", "policy")
}

func (d *dumpFlags) addExplain(c *cobra.Command) {
	c.Flags().BoolVar(&d.explain, "explain", false, "below each line, the Kubernetes or Antrea object it comes from")
}

func (d *dumpFlags) addNames(c *cobra.Command) {
	c.Flags().BoolVar(&d.names, "names", false, "names of tables and ports instead of numbers (the default on a terminal)")
	c.Flags().BoolVar(&d.noNames, "no-names", false, "numbers, so that ovs-ofctl add-flows takes the text (the default otherwise)")
	c.MarkFlagsMutuallyExclusive("names", "no-names")
}

var dumps = []dump{
	{"dump-flows [TABLE|FILTER]", "Print flow entries, as ovs-ofctl dump-flows does",
		`Print the flow entries of a table, or of all tables, with their counters.

FILTER chooses entries as ovs-ofctl's does. A match takes the entries whose match is as specific or more; table=,
cookie=VALUE/MASK, out_port=, out_group= and priority= take those that have it. --pod, --service and --policy take
the entries that the object wants; antrail explain names the field that wants each. A Pod's entries are on its own
Node. Several policies may want one entry, such as the one that isolates their Pod.`, "/flows", upTo("TABLE or FILTER"),
		func(c *cobra.Command, d *dumpFlags) {
			d.addNames(c)
			d.addExplain(c)
			c.Example += "\n  antrail dump-flows EgressMark --names --no-stats --explain " + seedObjects
			c.Example += "\n  antrail dump-flows table=ServiceLB,tcp,nw_dst=10.105.31.235 --names " + seedObjects +
				"\n  antrail dump-flows --service default/sample-clusterip --names " + seedObjects
			d.addObjects(c)
			d.addVersion(c)
			c.Flags().BoolVar(&d.noStats, "no-stats", false, "without counters and ages")
			c.Flags().BoolVar(&d.sort, "sort", false, "entries of one priority by their match")
		}},
	{"dump-groups", "Print groups, as ovs-ofctl dump-groups does",
		"Print the groups with their buckets.", "/groups", noArgs,
		func(c *cobra.Command, d *dumpFlags) { d.addNames(c); d.addExplain(c); d.addVersion(c) }},
	{"dump-meters", "Print meters, as ovs-ofctl dump-meters does",
		"Print the meters with their bands.", "/meters", noArgs, func(c *cobra.Command, d *dumpFlags) { d.addExplain(c) }},
	{"dump-ports [PORT]", "Print ports and their counters",
		"Print every port, or that of a number, name or Pod (namespace/name), with its counters, its driver and why,\nand its drops by reason.", "/ports", upTo("PORT"),
		func(c *cobra.Command, d *dumpFlags) {
			d.addNames(c)
			d.addExplain(c)
			c.Example += "\n  antrail dump-ports default/web-a --names --node node-a\n  antrail dump-ports client-a " + nodeFiles
		}},
	{"dump-workers", "Print the threads that move packets",
		"Print every worker: its ports, the part of its time that packets took in the last seconds, what it moved,\nhow long it worked, spun and slept, how long it kept the machine's idle processors awake (because pods talked, or beside a garbage collection),\nand how soon it ran when it was called in its sleep, as a histogram\n(32us: 4 is four times less than 32 microseconds and not less than 16).", "/workers", noArgs, nil},
	{"dump-tables", "Print tables and their counters",
		"Print every table: how many entries it has, static and learned, how many different masks they have, the packets\nlooked up, matched and dropped, how long a lookup takes and what its entry does until the next one, ct() and groups\nincluded (means of the walks that are timed, one in 1021),\nand the shape that its lookup took: empty; single, one entry beside a table-miss; exact, one mask, with its fields;\nprefix, masks that differ in the length of one; subtables, several masks; conjunction, subtables whose clauses are joined.", "/tables", noArgs, nil},
	{"dump-drops", "Print dropped packets by table and reason",
		"Print how many packets were dropped, by the table where their walk ended and the reason.", "/drops", noArgs, nil},
	{"dump-conntrack", "Print connections, as ovs-appctl dpctl/dump-conntrack does",
		"Print the tracked connections, or those that match all filters.", "/conntrack", noArgs,
		func(c *cobra.Command, d *dumpFlags) {
			d.connections.addTo(c)
			c.Flags().BoolVar(&d.explain, "explain", false, "below each connection, its Pods and the policy rules that allowed it")
			c.Example += "\n  antrail dump-conntrack --zone 65520 --address 10.10.0.0/24 --port 80 --state established --mark 0x10/0x10"
			c.Flags().BoolVar(&d.noStats, "no-stats", false, "without the times until they expire")
		}},
	{"dump-cache", "Print the exact-match cache's contents and counters",
		"Print how many walks are recorded, how many packets were replayed, why others were not, and which\nfields distinguish the first packets of connections.", "/cache", noArgs, nil},
	{"fdb-show", "Print learned MAC addresses, as ovs-appctl fdb/show does",
		"Print the MAC addresses that the NORMAL action has learned.", "/fdb", noArgs, nil},
}

// argumentParameter is the parameter of a dump's argument. A protocol's word, or text with
// = or a comma, is a filter.
func argumentParameter(path, argument string) string {
	switch {
	case path == "/ports":
		return "which"
	case strings.ContainsAny(argument, "=,") || flow.ProtocolByWord(argument) != nil:
		return "filter"
	}
	return "table"
}

func dumpCommands() []*cobra.Command {
	var all []*cobra.Command
	for i := range dumps {
		all = append(all, dumpCommand(&dumps[i]))
	}
	return all
}

func dumpCommand(d *dump) *cobra.Command {
	var from source
	var flags dumpFlags
	c := &cobra.Command{Use: d.use, Short: d.short, Long: d.long, Args: d.args}
	c.Example = "  antrail " + c.Name() + "\n  antrail " + c.Name() + " --node node-a\n  antrail " + c.Name() + " " + seedFiles
	from.addTo(c)
	if d.flags != nil {
		d.flags(c, &flags)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q := from.query()
		flags.setParameters(q, c)
		if len(args) > 0 {
			q.Set(argumentParameter(d.path, args[0]), args[0])
		}
		return from.get(c, d.path, q)
	}
	return c
}

// setParameters turns the flags into parameters.
func (d *dumpFlags) setParameters(q url.Values, c *cobra.Command) {
	if d.names || !d.noNames && terminal.Is(c.OutOrStdout()) {
		q.Set("names", "1")
	}
	if d.noStats {
		q.Set("stats", "0")
	}
	if d.sort {
		q.Set("sort", "1")
	}
	if d.explain {
		q.Set("explain", "1")
	}
	if d.version != "" {
		q.Set("version", d.version)
	}
	for i, f := range objectFlags {
		if c.Flags().Changed(f.name) {
			q.Set(f.name, d.objects[i])
		}
	}
	d.connections.setParameters(q)
}
