package main

import (
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/listing"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/learn"
	"github.com/antrail/antrail/tables/programs"
	"github.com/antrail/antrail/trace"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Completion of values. A shell asks for the possible words while a line is typed. The
// flags so far choose the agent or the files to ask, as for the command itself.

// wordsOf lists the possible words after args. A tab separates a word from its meaning.
type wordsOf func(c *cobra.Command, args []string) []string

// completeTimeout is how long an answer may take, because a person waits for it.
const completeTimeout = 3 * time.Second

// flagWords are the values of flags: of one command ("capture --port"), or of all.
var flagWords = withNodes(nodeFlagWords, map[string]wordsOf{
	"--node": nodeNames, "--on": nodeNames,
	"--pod": podNames, "--source": podNames, "--destination": podNames,
	"--reason": func(*cobra.Command, []string) []string { return reasonWords() },
	"--focus":  tableNames, "--table": tableNames, "--service": serviceNames, "--policy": policyNames, "capture --port": portNames, "--in-port": portNames,
	"--view":  fixed("ports", "workers", "tables", "rules", "connections", "drops", "reasons"),
	"--theme": fixed(slices.Sorted(maps.Keys(themes))...), "--state": stateWords,
	"--driver": fixed("auto", "afxdp", "afpacket"), "--tunnel": fixed("geneve", "vxlan", "gre"), "--tunnel-driver": fixed("kernel", "afxdp", "auto"),
	"--encap-mode": fixed("encap", "noEncap", "hybrid"), "--offload": fixed("auto", "off"), "--log-level": fixed("debug", "info", "warn", "error"),
	"--protocols": fixed(flow.VersionNames...), "--family": fixed("4", "6", "both"), "--ct-timeouts": fixed("ovs", "default"),
	"--output": fixed("text", "json", "yaml"), "pipeline --output": fixed(mapForms...), "trace --output": fixed(append([]string{"text", "json", "yaml"}, trace.Forms()...)...),
	"trace show --output": fixed(trace.Forms()...), "trace replay --output": fixed("text", "json"),
	"bench --output": fixed(report.Formats...), "bench conntrack --output": fixed(report.Formats...), "lab status --output": fixed("table", "json", "yaml"),
	"lab attack-test --output": fixed("table", "json"), "lab upgrade-test --output": fixed("table", "json"), "get --output": fixed(listing.Forms...),
	"--namespace": namespaces, "--program": fixed(programs.Names()...),
})

// withNodes adds words that only Nodes have (node.go).
func withNodes(nodes, words map[string]wordsOf) map[string]wordsOf {
	maps.Copy(words, nodes)
	return words
}

// fileFlags name files and directories, which a shell completes itself.
var fileFlags = []string{"socket", "switch", "await", "config", "settings", "dir", "flows", "groups", "meters", "ports", "manifests", "flows-dir", "cni-dir", "cni-bin-dir",
	"save", "write", "record", "plots", "log-file"}

// argWords are the arguments of commands. Other commands with arguments take files.
var argWords = withNodes(nodeArgWords, map[string]wordsOf{
	"dump-flows": first(tableNames), "dump-ports": first(portNames), "explain": first(objectNames), "get": kindOrName,
	"why": endNames, "learn": lessonWords,
	"trace": fixed(),
})

// fileArgs are commands whose arguments are files.
var fileArgs = []string{"replay", "bench compare", "bench trend", "trace show", "trace paths", "trace replay"}

// addWords sets the completion of flags and arguments of a command and those below it.
func addWords(c *cobra.Command) {
	path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), c.Root().Name()), " ")
	c.Flags().VisitAll(func(f *pflag.Flag) {
		words, known := flagWords[path+" --"+f.Name]
		if !known {
			words = flagWords["--"+f.Name]
		}
		if words == nil && slices.Contains(fileFlags, f.Name) {
			return
		}
		c.RegisterFlagCompletionFunc(f.Name, completing(words)) // it fails for unknown flags only
	})
	if words, known := argWords[path]; known {
		c.ValidArgsFunction = completing(words)
	} else if c.ValidArgs == nil && !slices.Contains(fileArgs, path) {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		addWords(sub)
	}
}

// completing is a cobra completion: the words that begin with the typed text. A flag
// without words takes a number or a text, and no file.
func completing(words wordsOf) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
		if words != nil {
			for _, w := range words(c, args) {
				if strings.HasPrefix(w, typed) {
					all = append(all, w)
				}
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// fixed are words that need no agent.
func fixed(all ...string) wordsOf {
	return func(*cobra.Command, []string) []string { return all }
}

// first are words for the first argument only.
func first(words wordsOf) wordsOf {
	return func(c *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return words(c, args)
	}
}

// sourceOf is the source that the flags of a line name, also of an incomplete line.
func sourceOf(c *cobra.Command) *source {
	value := func(name string) string {
		if f := c.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	s := &source{socket: value("socket"), node: value("node"), lab: value("lab")}
	s.manifests, s.program, s.tunnel = value("manifests"), value("program"), value("tunnel-port")
	if s.files.Flows = value("flows"); s.files.Flows != "" {
		s.files.Groups, s.files.Meters, s.files.Ports = value("groups"), value("meters"), value("ports")
	}
	if nodes := nodeNames(c, nil); s.manifests != "" && s.node == "" && len(nodes) > 0 {
		s.node = nodes[0]
	}
	return s
}

// requested returns the records of a path, from the agent or the files that the line names.
// It returns nil if the agent does not answer.
func requested[Record any](c *cobra.Command, path string) (all []Record) {
	client, err := sourceOf(c).client(io.Discard)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	if err := client.JSON(ctx, path, nil, &all); err != nil {
		return nil
	}
	return all
}

func tableNames(c *cobra.Command, _ []string) (all []string) {
	for _, t := range requested[api.Table](c, "/tables") {
		all = append(all, t.Name)
	}
	return all
}

// portNames are the ports of the switch, by their names and those of their Pods.
func portNames(c *cobra.Command, _ []string) (all []string) {
	for _, p := range requested[api.PortRecord](c, "/ports") {
		all = append(all, p.Name)
		if p.Pod != "" && c.Name() == "dump-ports" {
			all = append(all, p.Pod)
		}
	}
	return all
}

// podNames are the Pods of all Nodes, as namespace/name.
func podNames(c *cobra.Command, _ []string) (all []string) {
	for _, n := range requested[control.NodeRow](c, "/nodes") {
		for _, p := range n.Pods {
			all = append(all, p.Name)
		}
	}
	return all
}

// kindOrName are the kinds, then the names of that kind in the line's namespace. Without a
// namespace, names include theirs.
func kindOrName(c *cobra.Command, args []string) (all []string) {
	if len(args) == 0 {
		return kinds
	}
	kind, names := kindAndNames(args)
	namespace, _ := c.Flags().GetString("namespace") // get has it
	for _, i := range itemsOf(c, kind) {
		name := i.Name
		if namespace == "" && i.Namespace != "" {
			name = i.Namespace + "/" + name
		}
		if !slices.Contains(names, name) && (namespace == "" || i.Namespace == namespace) {
			all = append(all, name)
		}
	}
	return all
}

// namespaces are the namespaces of objects of the line's kind, or of pods.
func namespaces(c *cobra.Command, args []string) (all []string) {
	kind := "pods"
	if len(args) > 0 {
		kind, _ = kindAndNames(args)
	}
	for _, i := range itemsOf(c, kind) {
		if i.Namespace != "" && !slices.Contains(all, i.Namespace) {
			all = append(all, i.Namespace)
		}
	}
	return all
}

// itemsOf are the objects of a kind, as get shows them.
func itemsOf(c *cobra.Command, kind string) []api.Item {
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	client, err := sourceOf(c).client(io.Discard)
	if err != nil {
		return nil
	}
	l, err := client.List(ctx, "/"+kind, false)
	if err != nil {
		return nil
	}
	return l.Items
}

// endNames are the ends for why: FROM, then TO.
func endNames(c *cobra.Command, args []string) []string {
	if len(args) > 1 {
		return nil
	}
	all := append(podNames(c, nil), "external", "node")
	if len(args) == 1 {
		for _, s := range serviceNames(c, nil) {
			all = append(all, "svc:"+s)
		}
	}
	return all
}

// serviceNames and policyNames are namespace/name, or name of an object without namespace.
func serviceNames(c *cobra.Command, _ []string) []string {
	return withoutKind(objectsOf(c, "services"))
}
func policyNames(c *cobra.Command, _ []string) []string { return withoutKind(objectsOf(c, "policies")) }

func withoutKind(objects []string) (all []string) {
	for _, o := range objects {
		_, name, _ := strings.Cut(o, "/")
		all = append(all, name)
	}
	return all
}

// objectsOf are the objects of a kind, as KIND/NAMESPACE/NAME.
func objectsOf(c *cobra.Command, kind string) (all []string) {
	for _, i := range itemsOf(c, kind) {
		all = append(all, i.Object)
	}
	return all
}

// objectNames are all objects with entries.
func objectNames(c *cobra.Command, _ []string) (all []string) {
	for _, kind := range []string{"pods", "services", "policies", "egresses", "trafficcontrols"} {
		all = append(all, objectsOf(c, kind)...)
	}
	return all
}

// nodeNames are the Nodes of the manifests that the line names, or of a lab.
func nodeNames(c *cobra.Command, _ []string) (all []string) {
	if f := c.Flags().Lookup("manifests"); f != nil && f.Value.String() != "" {
		all, _ = pipeline.ManifestNodes(f.Value.String())
		return all
	}
	id, _ := c.Flags().GetString("lab") // "" for commands without the flag
	all, _ = nodesOfLab(id)
	return all
}

func reasonWords() (all []string) {
	for _, r := range pipeline.LossReasons() {
		all = append(all, r.Name+"\t"+r.Meaning)
	}
	return all
}

// stateWords are the states of the current connections.
func stateWords(c *cobra.Command, _ []string) (all []string) {
	for _, r := range requested[api.Connection](c, "/conntrack") {
		if r.State != "" && !slices.Contains(all, r.State) {
			all = append(all, r.State)
		}
	}
	return all
}

// lessonWords are the lessons by their numbers, then the verbs.
func lessonWords(_ *cobra.Command, args []string) (all []string) {
	if len(args) == 1 {
		return learn.Verbs
	}
	lessons, _ := learn.Lessons()
	if len(args) > 0 {
		return nil
	}
	for i, l := range lessons {
		all = append(all, strconv.Itoa(i+1)+"\t"+l.Title)
	}
	return all
}
