// Package rules has the tests that check the rules of this repository, and no other
// code. Rules are about imports, unsafe, names of goroutines, lengths of files and
// sentences, words, and waits on a packet's way. A failure prints the rule's reason.
// Most rules do not apply to test files: a test may import what it compares with.
package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/antrail/antrail/"

// file is one Go file that is built.
type file struct {
	path    string // from the repository's top: dataplane/walk.go
	dir     string // dataplane
	imports []string
	lines   int
	text    string
	tree    *ast.File
	set     *token.FileSet
}

// layers says what a package of ours may import of ours. A package that is not
// listed stands above them and may import any. A package that may import control may also
// import the packages below it that control imports: see mayImport.
var layers = map[string]struct {
	may    []string
	reason string
}{
	"packet":                 {nil, "packets are what everything else is made of"},
	"packet/packettest":      {[]string{"packet"}, "it builds packets"},
	"flow":                   {[]string{"packet"}, "the language of entries must be usable without a switch"},
	"conntrack/tuple":        {[]string{"packet"}, "tuples are read and written without a table of connections"},
	"conntrack/reassembly":   {[]string{"packet", "conntrack/tuple"}, "fragments are collected without a table of connections"},
	"conntrack/proto":        {[]string{"packet", "conntrack/tuple"}, "state machines run without a table of connections"},
	"conntrack/store":        {[]string{"packet", "conntrack/proto", "conntrack/tuple"}, "connections are kept whatever limits and choices a table has"},
	"conntrack":              {[]string{"packet", "conntrack/proto", "conntrack/store", "conntrack/tuple"}, "connections are tracked for any pipeline, or for none"},
	"flow/parse":             {[]string{"packet", "flow"}, "text is read without a switch"},
	"flow/wire":              {[]string{"flow", "flow/parse"}, "entries cross to another process as text, whoever sends them"},
	"tunnel":                 {[]string{"packet"}, "encapsulation knows bytes only"},
	"vswitchd/openflow":      {[]string{"packet", "flow"}, "messages are read and written without a switch and without a connection"},
	"vswitchd":               {[]string{"flow", "dataplane", "door", "switchd", "tunnel", "internal/nft", "ports/tap", "ports/ways", "vswitchd/appctl", "vswitchd/bridge", "vswitchd/daemon", "vswitchd/ofserver", "vswitchd/openflow", "vswitchd/ovsdb/server", "vswitchd/rundir", "vswitchd/unixctl"}, "a switch is driven from another process"},
	"vswitchd/appctl":        {[]string{"packet", "flow", "flow/parse", "door", "conntrack", "conntrack/reassembly", "dataplane", "vswitchd/unixctl"}, "commands ask whatever switch there is behind a door"},
	"vswitchd/ofserver":      {[]string{"packet", "flow", "door", "conntrack", "dataplane", "vswitchd/openflow", "internal/printable"}, "controllers drive whatever switch there is behind a door"},
	"trace":                  {[]string{"packet", "internal/printable"}, "walks are printed whatever switch they are of, or from a file"},
	"diagram":                {[]string{"flow", "internal/printable"}, "a map is drawn from entries alone, whatever pipeline they are of and whoever asks"},
	"web":                    {[]string{"diagram", "internal/halfopen"}, "the page knows of a switch what its API says, and draws the map of it"},
	"filter":                 {nil, "an expression is compiled for bytes, whoever has them"},
	"ports":                  {[]string{"packet"}, "a port moves frames and knows nothing of what they are for"},
	"dataplane/lookup":       {[]string{"flow"}, "a key meets its entry whatever packet it is of"},
	"dataplane/program":      {[]string{"dataplane/lookup", "flow", "conntrack"}, "entries are compiled whatever packets meet them"},
	"dataplane/telemetry":    {[]string{"dataplane/program", "dataplane/lookup", "packet", "flow", "flow/wire", "conntrack", "conntrack/reassembly", "ports"}, "what a switch tells is read without the switch"},
	"dataplane/l2":           {[]string{"dataplane/telemetry", "dataplane/lookup", "packet"}, "addresses and headers are checked whatever switch they are in"},
	"dataplane/flowcache":    {[]string{"dataplane/telemetry", "dataplane/program", "dataplane/lookup", "packet", "flow", "conntrack", "ports"}, "walks are remembered whoever walks"},
	"dataplane/offload":      {[]string{"dataplane/flowcache", "dataplane/telemetry", "dataplane/program", "packet", "conntrack", "ports"}, "connections are given to the kernel whatever walked them"},
	"dataplane/sched":        {[]string{"dataplane/telemetry"}, "polling is decided by times and counts"},
	"dataplane":              {[]string{"dataplane/offload", "dataplane/flowcache", "dataplane/sched", "dataplane/l2", "dataplane/telemetry", "dataplane/program", "dataplane/lookup", "packet", "flow", "conntrack", "conntrack/reassembly", "tunnel", "ports"}, "the pipeline is data given to it: no table, no mark, no kind of port by name"},
	"door":                   {[]string{"flow", "flow/parse", "conntrack", "conntrack/reassembly", "ports", "dataplane"}, "a switch is asked and told the same things by whatever controller"},
	"switchd":                {[]string{"packet", "flow", "conntrack", "ports", "ports/afpacket", "ports/afxdp", "ports/offload", "ports/tap", "ports/underlay", "ports/uplink", "ports/ways", "dataplane", "tunnel", "door", "switchd/local", "switchd/reject", "internal/confine", "internal/halfopen", "internal/memory", "internal/unixsocket"}, "the switch knows packets, entries and ports: no objects, no pipeline but for what it answers, no Node"},
	"switchd/local":          {[]string{"packet", "flow", "conntrack", "ports", "dataplane", "filter", "door", "switchd/reject"}, "a switch runs in any process, and without a kernel that it knows"},
	"switchd/reject":         {[]string{"packet", "flow", "dataplane", "tables", "door"}, "answers are made beside the switch, by what the tables say a packet-in means"},
	"tables/layout":          {[]string{"flow"}, "what programs share names no table"},
	"tables":                 {[]string{"flow", "tables/layout"}, "a table's test compiles in a second and needs no network card"},
	"tables/uplink":          {[]string{"flow", "tables/layout"}, "a program knows no other one"},
	"tables/windows2020":     {[]string{"flow", "tables/layout"}, "a program knows no other one"},
	"tables/vppl3":           {[]string{"flow", "tables/layout"}, "a program knows no other one"},
	"tables/programs":        {[]string{"flow", "tables", "tables/layout", "tables/uplink", "tables/windows2020", "tables/vppl3"}, "who chooses a program needs no switch"},
	"control/cluster":        {[]string{"tables"}, "objects are plain values, wherever they come from"},
	"control/manifest":       {[]string{"control/cluster", "flow", "tables", "internal/printable"}, "text becomes plain objects wherever it comes from"},
	"control/store":          {[]string{"control/cluster", "control/manifest", "internal/printable"}, "objects are kept whoever asks for them"},
	"control/ledger":         {[]string{"control/cluster", "flow"}, "claims are counted whatever objects make them"},
	"control/numbers":        {[]string{"control/cluster"}, "numbers are assigned whatever they number"},
	"control/policy":         {[]string{"control/cluster", "control/manifest", "control/ledger", "control/numbers", "flow", "tables"}, "rules follow from policies and Pods, and are installed by others"},
	"control":                {[]string{"control/policy", "control/ledger", "control/numbers", "control/store", "control/cluster", "control/manifest", "flow", "flow/parse", "tables", "internal/printable"}, "objects become entries whatever switch runs them"},
	"agent/config":           {[]string{"packet", "flow", "tunnel", "tables", "tables/layout", "tables/programs", "tables/uplink", "control", "ports", "door", "switchd/local"}, "a configuration is checked before there is an agent"},
	"agent/api":              {[]string{"control", "dataplane", "diagram", "trace", "agent/config"}, "a client needs the questions and the answers, not who answers"},
	"agent/listing":          {[]string{"agent/api"}, "objects are chosen and printed whatever kind they are of"},
	"agent/support":          {[]string{"agent/api"}, "an archive has what an agent answers, and two files"},
	"agent/podports":         {[]string{"control", "dataplane", "ports", "agent/config"}, "ports follow links whatever switch they are of"},
	"agent/assignments":      {[]string{"control", "switchd", "agent/config"}, "the switch keeps entries; an agent keeps what it gave to objects"},
	"agent/pipeline":         {[]string{"packet", "flow", "flow/parse", "conntrack", "ports", "tunnel", "dataplane", "trace", "tables", "tables/layout", "tables/programs", "control", "control/kube", "door", "switchd/local", "agent/config", "agent/api", "agent/podports", "agent/packetin"}, "a switch and what it runs can be asked without an agent"},
	"agent/reach":            {[]string{"packet", "flow", "conntrack", "dataplane", "trace", "switchd/local", "agent/api", "agent/packetin", "agent/pipeline"}, "entries are enough to follow a connection"},
	"agent/answer":           {[]string{"packet", "flow", "flow/parse", "conntrack", "conntrack/reassembly", "ports/memory", "ports/pcap", "dataplane", "trace", "diagram", "web", "rehearsal", "tables", "tables/layout", "tables/programs", "control", "control/kube", "door", "switchd/local", "agent/config", "agent/api", "agent/pipeline", "agent/reach"}, "answers are the same from an agent and from files"},
	"agent/packetin":         {[]string{"packet", "flow", "dataplane", "tables", "control"}, "packets are written down whichever switch sends them"},
	"learn":                  {[]string{"packet", "flow", "flow/parse", "conntrack", "dataplane", "control", "examples", "ports/memory", "rehearsal", "tables/programs"}, "lessons need no root and no network, and run wherever Go does"},
	"rehearsal":              {[]string{"packet", "dataplane", "ports/memory"}, "switches are joined whoever fills them: lessons, and the book's Nodes"},
	"control/kubectl":        {nil, "an agent is found by what the API server knows of pods"},
	"control/kube":           {[]string{"control"}, "the API server is a source of objects like any other: it fills control's store"},
	"ports/underlay":         {[]string{"packet", "ports", "tunnel", "ports/ways", "internal/nsthread", "internal/sysctl"}, "frames go to other Nodes by the kernel's sockets and ways"},
	"ports/uplink":           {[]string{"packet", "ports", "tunnel", "ports/afxdp", "ports/underlay", "ports/ways"}, "a tunnel's short cut is made of the driver of the card beside the whole way"},
	"ports/porttest":         {[]string{"packet", "packet/packettest", "ports"}, "the suite knows ports by their interface, and builds packets for them"},
	"host":                   {[]string{"packet", "internal/nft", "internal/sysctl"}, "the Node's own side works without the switch; it announces addresses, in packets"},
	"cni":                    {nil, "plugin and agent share the words, not the code"},
	"cni/plugin":             {[]string{"cni"}, "the plugin is a thin client: the agent has the state"},
	"cni/node":               {[]string{"cni", "internal/nsthread", "internal/sysctl"}, "who has which address is known without a switch, which is asked through an interface"},
	"bench/sched":            {nil, "threads are watched whatever they do"},
	"bench/report":           {nil, "figures are written whatever they are of"},
	"bench/testbed":          {[]string{"packet", "flow", "flow/parse", "conntrack", "conntrack/reassembly", "conntrack/proto", "conntrack/tuple", "conntrack/store", "ports", "dataplane", "lab", "bench/sched"}, "Nodes, links and frames are the same for all contenders"},
	"bench/ovs":              {[]string{"flow", "flow/parse", "bench/sched", "bench/testbed", "internal/unixctl"}, "Open vSwitch runs whatever is measured of it"},
	"bench/rig":              {[]string{"bench/report", "bench/sched", "bench/testbed"}, "rounds are run whatever they measure"},
	"bench/workload":         {[]string{"packet", "flow", "flow/parse", "tables", "tables/layout", "tables/uplink", "tables/vppl3", "tables/windows2020", "examples", "lab", "bench/testbed"}, "packets and programs are the same for all switches"},
	"bench/conntrack":        {[]string{"packet", "conntrack", "conntrack/reassembly", "conntrack/proto", "conntrack/tuple", "conntrack/store", "bench/ovs", "bench/report", "bench/rig", "bench/sched", "bench/testbed"}, "connections are tracked without a pipeline"},
	"bench/gc":               {[]string{"packet", "flow", "flow/parse", "conntrack", "conntrack/reassembly", "conntrack/proto", "conntrack/tuple", "conntrack/store", "ports", "ports/memory", "dataplane", "agent/config", "bench/report", "bench/rig", "bench/sched", "bench/testbed", "bench/workload"}, "a worker is collected beside, whoever has made its switch"},
	"bench/forward":          {[]string{"packet", "ports", "ports/afpacket", "ports/afxdp", "lab", "bench/ovs", "bench/report", "bench/rig", "bench/sched", "bench/testbed", "bench/workload"}, "frames are forwarded without an agent"},
	"bench/pipeline":         {[]string{"packet", "flow", "flow/parse", "conntrack", "conntrack/reassembly", "conntrack/proto", "conntrack/tuple", "conntrack/store", "ports/memory", "dataplane", "filter", "bench/ovs", "bench/report", "bench/rig", "bench/sched", "bench/testbed", "bench/workload"}, "entries are measured without drivers and without an agent"},
	"bench/pods":             {[]string{"packet", "ports", "ports/afpacket", "dataplane", "door", "agent/api", "agent/config", "examples", "lab", "bench/ovs", "bench/report", "bench/rig", "bench/sched", "bench/testbed", "bench/workload"}, "pods are measured with real agents and real links"},
	"vswitchd/jsonrpc":       {nil, "messages are cut and bounded whoever sends them"},
	"vswitchd/rundir":        {[]string{"internal/unixsocket"}, "sockets and pid files are the same for all daemons"},
	"vswitchd/unixctl":       {[]string{"vswitchd/jsonrpc"}, "commands are taken whatever they do"},
	"vswitchd/ovsdb/datum":   {nil, "values are read and compared without a schema"},
	"vswitchd/ovsdb/schema":  {[]string{"vswitchd/ovsdb/datum", "vswitchd/jsonrpc"}, "tables are listed without rows"},
	"vswitchd/ovsdb/store":   {[]string{"vswitchd/ovsdb/datum", "vswitchd/ovsdb/schema", "vswitchd/jsonrpc", "vswitchd/rundir"}, "rows are kept and checked whoever changes them"},
	"vswitchd/ovsdb/replica": {[]string{"vswitchd/ovsdb/datum", "vswitchd/ovsdb/schema", "vswitchd/ovsdb/store", "vswitchd/jsonrpc"}, "rows are copied whoever follows them"},
	"vswitchd/ovsdb/server":  {[]string{"vswitchd/ovsdb/datum", "vswitchd/ovsdb/schema", "vswitchd/ovsdb/store", "vswitchd/jsonrpc"}, "clients are served whatever the rows are for"},
	"vswitchd/bridge":        {[]string{"vswitchd/ovsdb/datum", "vswitchd/ovsdb/store"}, "rows become bridges and ports of whatever switch the caller has"},
	"vswitchd/bridgetest":    {[]string{"vswitchd/bridge"}, "a switch for tests keeps what it is told"},
	"vswitchd/daemon":        {[]string{"vswitchd/bridge", "vswitchd/ovsdb/replica", "vswitchd/ovsdb/schema", "vswitchd/ovsdb/server", "vswitchd/ovsdb/store", "vswitchd/rundir", "vswitchd/unixctl"}, "tools find the daemons whatever switch is behind them"},
	"internal/printable":     {nil, "text is text, whoever prints it"},
	"internal/terminal":      {nil, "a terminal is asked whoever prints"},
	"internal/memory":        {nil, "a process returns memory whatever it keeps"},
	"internal/unixctl":       {nil, "a daemon's control socket is the same to tests and measurements"},
	"internal/unixsocket":    {nil, "a socket is opened whichever daemon listens there"},
	"internal/halfopen":      {nil, "a server bounds its peers whatever it serves"},
	"internal/kubetest":      {nil, "a server for tests knows objects as JSON only"},
	"host/preflight":         {nil, "a Node is looked at before there is a switch"},
	"deploy":                 {nil, "it holds files only"},
	"examples":               {nil, "it holds files only"},
	"docs":                   {nil, "it holds files only"},
}

// driver is what a kind of port may import of ours.
var driver = []string{"packet", "ports", "tunnel", "internal/nsthread", "internal/sysctl"}

// confined says which directories alone may import a package of others.
var confined = []struct {
	imported *regexp.Regexp
	may      []string // directories, with what lies below them
	reason   string
}{
	{regexp.MustCompile(`^(golang\.org/x/sys/unix|syscall|github\.com/vishvananda/(netlink|netns)|github\.com/cilium/ebpf.*|github\.com/safchain/ethtool|github\.com/google/nftables.*)$`),
		[]string{"ports", "host", "cni", "internal/nsthread", "internal/terminal", "internal/confine", "internal/confinetest", "internal/halfopen", "internal/nstest", "internal/reaptest", "internal/ovstest", "internal/unixctl", "internal/unixsocket", "internal/kubetest", "vswitchd/rundir", "door", "switchd", "agent", "lab", "bench", "cmd", "hack"},
		"packet, flow, conntrack, tunnel, dataplane, tables and control must run, and be tested, without a kernel"},
	{regexp.MustCompile(`^github\.com/spf13/cobra$`), []string{"cmd"}, "subcommands are wiring; what they do lives in packages"},
	{regexp.MustCompile(`^charm\.land/`), []string{"top"}, "what is drawn on a terminal is one package's; commands start it"},
	{regexp.MustCompile(`^github\.com/(asavie|slavc)/xdp$`), []string{"bench"}, "it is the library to be measured against; ports/afxdp has its own rings"},
	{regexp.MustCompile(`^github\.com/containernetworking/`), []string{"cni", "agent", "cmd/antrail-cni"}, "the words of the CNI specification are spoken by the plugin and who answers it"},
	{regexp.MustCompile(`^k8s\.io/`), []string{"hack", "control", "agent/listing"}, "types of Kubernetes stop at control's door; selectors and JSONPath read what a person types as kubectl does"},
	{regexp.MustCompile(`^github\.com/gopacket/gopacket`), []string{"internal/gopackettest"}, "it is for tests: a program that links it has 5 MB of tables, which each collection of garbage reads"},
	{regexp.MustCompile(`^C$`), nil, "there is no cgo here"},
}

const maxLines = 800

// top is the repository's first directory.
func top(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// read parses every Go file of the repository; tests too when asked.
func read(t *testing.T, tests bool) (files []*file) {
	t.Helper()
	root, set := top(t), token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") && !tests {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		f, err := parse(set, name, filepath.ToSlash(rel))
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("only %d Go files were found under %s", len(files), root)
	}
	return files
}

func parse(set *token.FileSet, name, rel string) (*file, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f := &file{path: rel, dir: path.Dir(rel), text: string(text), lines: strings.Count(string(text), "\n"), set: set}
	f.tree, err = parser.ParseFile(f.set, rel, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, i := range f.tree.Imports {
		f.imports = append(f.imports, strings.Trim(i.Path.Value, `"`))
	}
	return f, nil
}

// under says whether a directory is one of the given, or below one.
func under(dir string, tops []string) bool {
	return slices.ContainsFunc(tops, func(t string) bool { return dir == t || strings.HasPrefix(dir, t+"/") })
}

// mayImport reports whether a package is in the list, or lies below one that is and is in
// that one's own list: control/store goes with control.
func mayImport(list []string, ours string) bool {
	return slices.ContainsFunc(list, func(l string) bool {
		return ours == l || strings.HasPrefix(ours, l+"/") && slices.Contains(layers[l].may, ours)
	})
}

func TestImportsGoDownwards(t *testing.T) {
	for _, f := range read(t, false) {
		layer, listed := layers[f.dir]
		if !listed && strings.HasPrefix(f.dir, "ports/") {
			layer.may, layer.reason, listed = driver, "a kind of port moves frames and knows nothing of what they are for", true
		}
		for _, i := range f.imports {
			if ours, ok := strings.CutPrefix(i, module); listed && ok && !mayImport(layer.may, ours) {
				t.Errorf("%s imports %s; %s may import %q of ours: %s", f.path, ours, f.dir, layer.may, layer.reason)
			}
		}
	}
}

func TestImportsStayConfined(t *testing.T) {
	for _, f := range read(t, false) {
		for _, i := range f.imports {
			for _, c := range confined {
				if c.imported.MatchString(i) && !under(f.dir, c.may) {
					t.Errorf("%s imports %s, which only %q may: %s", f.path, i, c.may, c.reason)
				}
			}
		}
	}
}

func TestUnsafeStaysInItsFiles(t *testing.T) {
	for _, f := range read(t, true) {
		if slices.Contains(f.imports, "unsafe") && !strings.HasSuffix(strings.TrimSuffix(f.path, "_test.go"), "_unsafe") && !strings.HasSuffix(f.path, "_unsafe.go") {
			t.Errorf("%s imports unsafe; only files named *_unsafe.go may: whoever reviews memory safety reads those and no others", f.path)
		}
	}
}

// shortLived are directories whose goroutines end with the call that starts
// them, which waits for them: a check, a measurement, a suite.
var shortLived = []string{"lab", "bench", "ports/porttest", "internal/racetest"}

// TestGoroutinesAreNamedRun checks that a goroutine's body is a function whose
// name begins with run, called alone or from a function literal, so that one
// search lists all that runs at once.
func TestGoroutinesAreNamedRun(t *testing.T) {
	for _, f := range read(t, false) {
		if under(f.dir, shortLived) {
			continue
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if body := started(n); body != nil && !callsRun(body) {
				t.Errorf("%s: the goroutine's body is no function named run…: a search for run must list all concurrency", f.set.Position(n.Pos()))
			}
			return true
		})
	}
}

// started is what a node starts in a goroutine, go f() or wg.Go(f); nil when it
// starts none.
func started(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.GoStmt:
		if lit, ok := n.Call.Fun.(*ast.FuncLit); ok {
			return lit
		}
		return n.Call
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 {
			return n.Args[0]
		}
	}
	return nil
}

// callsRun says whether an expression is, calls, or as a literal contains a
// call of, a function whose name begins with run or is Run.
func callsRun(e ast.Expr) (found bool) {
	if isRun(e) {
		return true
	}
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && isRun(call.Fun) {
			found = true
		}
		return !found
	})
	return found
}

func isRun(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return strings.HasPrefix(e.Name, "run")
	case *ast.SelectorExpr:
		return strings.HasPrefix(e.Sel.Name, "run") || e.Sel.Name == "Run"
	}
	return false
}

func TestFilesAreShort(t *testing.T) {
	for _, f := range read(t, true) {
		if f.lines > maxLines {
			t.Errorf("%s has %d lines; %d is the most: a longer file has more than one subject", f.path, f.lines, maxLines)
		}
	}
}

// manyFiles is how many files a package may have, tests aside, before its comment is
// a map of them.
const manyFiles = 5

// goFile is the name of a file in a text.
var goFile = regexp.MustCompile(`\b[a-z0-9_]+\.go\b`)

// namesItself says whether a file's name is all that a map could say of it: tables'
// files that tell where packets go next are named after their table, commands' files
// after their command.
func (f *file) namesItself() bool {
	return strings.Contains(f.text, "\n// Next: ") || f.dir == "cmd/antrail" && strings.Contains(f.text, "cobra.Command{")
}

// TestPackagesNameTheirFiles: the comment of a package of many files names all of
// them, and no file that is not there.
func TestPackagesNameTheirFiles(t *testing.T) {
	byDir, named := map[string][]*file{}, map[string]bool{}
	for _, f := range read(t, false) {
		byDir[f.dir] = append(byDir[f.dir], f)
		comment, _, _ := strings.Cut("\n"+f.text, "\npackage ")
		if strings.Contains(comment, "\n// ") {
			named[f.path] = true // the map itself
		}
		for _, name := range goFile.FindAllString(comment, -1) {
			named[f.dir+"/"+name] = true
		}
	}
	for dir, files := range byDir {
		for _, f := range files {
			if len(files) > manyFiles && !named[f.path] && !f.namesItself() {
				t.Errorf("%s is not named in the package comment of %s, by which readers find their way", f.path, dir)
			}
			delete(named, f.path)
		}
	}
	for name := range named {
		t.Errorf("%s is named in its package's comment and is not there", name)
	}
}

// unfinished are words that park a known trouble in the code.
var unfinished = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X"}, "|") + `)\b`)

func TestNothingIsParked(t *testing.T) {
	for _, f := range read(t, true) {
		for i, line := range strings.Split(f.text, "\n") {
			if word := unfinished.FindString(line); word != "" {
				t.Errorf("%s:%d says %s: what is known to be wrong is mended or told to the user, not parked", f.path, i+1, word)
			}
		}
	}
}

// TestRulesBite feeds each rule a file that breaks it.
func TestRulesBite(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"go f()", "no run"}, {"go runF()", "run"}, {"go s.runF()", "run"}, {"go func() { f() }()", "no run"},
		{"go func() { c <- s.runF() }()", "run"}, {"wg.Go(func() { f() })", "no run"}, {"wg.Go(s.runF)", "run"}, {"f()", "none"},
	} {
		tree, err := parser.ParseFile(token.NewFileSet(), "x.go", fmt.Sprintf("package x\nfunc g() { %s }", c.body), 0)
		if err != nil {
			t.Fatal(err)
		}
		got := "none"
		ast.Inspect(tree, func(n ast.Node) bool {
			if body := started(n); n != nil && body != nil {
				got = map[bool]string{true: "run", false: "no run"}[callsRun(body)]
			}
			return true
		})
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	if !unfinished.MatchString("// TO"+"DO later") || under("portsx", []string{"ports"}) || !under("ports/tap", []string{"ports"}) {
		t.Error("a rule does not bite")
	}
}
