//go:build linux && !portable

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/reaptest"
	"github.com/antrail/antrail/lab"
	"github.com/spf13/cobra"
)

// asBinary makes this test binary behave as antrail, for tests that need a process.
const asBinary = "ANTRAIL_TEST_AS_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv(asBinary) != "" || len(os.Args) > 1 && os.Args[1] == "agent" {
		main() // a lab's agent, whoever made the lab, never runs the tests again
	}
	if err := os.Chdir("../.."); err != nil { // the examples name files from there
		panic(err)
	}
	os.Exit(m.Run())
}

func TestExitCodes(t *testing.T) {
	t.Setenv("ANTRAIL_LAB_DIR", t.TempDir())
	noGroup := t.TempDir() + "/no-group.flows"
	if err := os.WriteFile(noGroup, []byte("table=0,priority=1,ip actions=group:9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		args string
		code int
		want string // in the output
	}{
		{"", 0, "Available Commands"},
		{"version", 0, "antrail "},
		{"--version", 0, "antrail "},
		{"version x", 2, "one argument too many"},
		{"man", 2, "DIR is missing: antrail man DIR"},
		{"man /no/such", 1, "/no/such"},
		{"lab", 0, "lab exec client-a"},
		{"lab down", 0, "no lab is up"},
		{"dump-groups " + seedFiles, 0, "group_id=10,type=select"},
		{"dump-flows SpoofGuard --names --no-stats " + seedFiles, 0, "table=SpoofGuard, priority=200,ip,in_port="},
		{"dump-tables -o yaml " + seedFiles, 0, "name: SpoofGuard"},
		{"dump-conntrack --zone 65520 --address 10.10.0.0/24 --port 80 --state established --mark 0x10/0x10 -o json " + seedFiles, 0, "[]"},
		{"conntrack", 0, "conntrack stats"},
		{"conntrack stats " + seedFiles, 0, "ct_insert_fail_total        reason ct_full"},
		{"conntrack stats -o json " + seedFiles, 0, `"name": "ct_limit"`},
		{"pipeline --program windows2020", 0, "L2ForwardingOut"},
		{"pipeline --program uplink", 0, "UplinkClassifier"},
		{"dump-flows --program uplink table=14 --explain --no-stats", 0, "program uplink W-20"},
		{"pipeline --program vppl3 -o svg -w -", 0, "ip4-lookup"},
		{"pipeline --program windows", 1, `no program "windows"`},
		{"pipeline --program antrea", 1, "entries come from objects"},
		{"dump-flows --program windows2020 table=110 --explain --no-stats", 0, "program windows2020 W-20"},
		{"dump-flows --program vppl3 " + seedFiles, 2, "program"},
		{"dump-groups --program vppl3 --explain", 1, "the entries have no objects"},
		{"trace --program vppl3 in_port=tap11,tcp,dl_src=00:00:00:00:00:02,dl_dst=02:fe:69:99:eb:9d,nw_src=10.1.1.12,nw_dst=10.1.1.9,tp_dst=8080", 0, `output to port 11 ("tap8")`},
		{"explain --program windows2020 table=110,priority=200,ip,reg0=0x20000/0x20000", 0, "the document's own entry"},
		{"explain --program windows2020 table=110,priority=7,ip", 1, "no entry with this table"},
		{"explain --program windows2020 Pod/default/a", 1, "the entries have no objects"},
		{"replay --program windows2020 /no/such", 1, "/no/such"},
		{"bogus", 2, `unknown command "bogus"`},
		{"drop", 2, `unknown command "drop" for "antrail" (did you mean drops?)`},
		{"lab staus", 2, `unknown command "staus" for "antrail lab" (did you mean status?)`},
		{"check --live --config x", 2, "antrail: --config and --live exclude each other"},
		{"drops --sums --pod a/b", 2, "antrail: --pod and --sums exclude each other"},
		{"drops db-a", 2, `"db-a" is one argument too many: antrail drops [flags]`},
		{"lab exec", 2, "a POD, a Node or outside and the COMMAND are missing: antrail lab exec POD -- COMMAND"},
		{"get", 2, "what to get is missing: antrail get policies|services|"},
		{"get policys " + seedObjects, 2, `there is nothing called "policys" (did you mean policies?); there are policies, services, `},
		{"get svc " + seedObjects, 0, "sample-clusterip"},
		{"get policy " + seedObjects, 0, "TIER"},
		{"trace --live in_port=1", 2, `"in_port=1": --live watches real packets`},
		{"trace in_port=1, tcp " + seedFiles, 2, `"tcp" is one argument too many: antrail trace FLOW`},
		{"get pods web-a --manifests examples/web-app --node node-a -o jsonpath={.ips[0]}", 0, "10.10.0.24"},
		{"get pod/web-a -n default -o name --manifests examples/web-app --node node-a", 0, "pod/web-a\n"},
		{"get clusternetworkpolicy/ingress-allow-http-request-to-api-v2 -o name --manifests examples/web-app --node node-a", 0, "clusternetworkpolicy/ingress-allow-http-request-to-api-v2\n"},
		{"get pods -l app=web --no-headers --manifests examples/web-app --node node-a", 0, "default  web-a  10.10.0.24,"},
		{"get pods web-x --manifests examples/web-app --node node-a", 1, `pods: there is no "web-x"; there are default/client-a, `},
		{"get pods -n default -A " + seedObjects, 2, "--all-namespaces and --namespace exclude each other"},
		{"get services -o wide " + webApp + " --node node-a", 0, "ENDPOINT"},
		{"get endpoints --sort-by=.object " + webApp + " --node node-a", 0, "WEIGHT"},
		{"dump-flows tcp,nw_dst=10.105.31.235 --names --no-stats " + seedObjects, 0, "table=ServiceLB, priority=200,tcp,reg4=0x10000/0x70000,nw_dst=10.105.31.235,tp_dst=80 "},
		{"dump-flows table=ServiceLB,bogus=1 " + seedObjects, 1, `filter "table=ServiceLB,bogus=1": `},
		{"dump-flows --service default/sample-clusterip --names --no-stats " + seedObjects, 0, "table=ServiceLB, "},
		{"dump-flows --pod default/nobody " + seedObjects, 1, `there is no pod "default/nobody"; antrail get pods lists them`},
		{"dump-flows --pod nobody " + seedObjects, 1, `pod="nobody" is not NAMESPACE/NAME`},
		{"dump-flows --pod default/web-b " + webApp + " --node node-a", 1, "Pod default/web-b runs on Node node-b: ask that Node's agent"},
		{"dump-flows --policy= " + webApp + " --node node-a", 1, `there is no policy ""; antrail get policies lists them`},
		{"dump-flows --service= " + webApp + " --node node-a", 1, `service="" is not NAMESPACE/NAME`},
		{"dump-flows --policy nobody " + webApp + " --node node-a", 1, `there is no policy "nobody"`},
		{"dump-flows --policy a --pod b/c " + webApp + " --node node-a", 2, "--pod and --policy exclude each other"},
		{"dump-flows --pod a/b " + seedFiles, 1, "the entries have no objects"},
		{"dump-flows -O OpenFlow10 --no-stats Classifier " + seedFiles, 0, "actions=load:0x2->NXM_NX_REG0[0..3],"},
		{"dump-groups -O OpenFlow10 " + seedFiles, 0, "NXST_GROUP_DESC reply (xid=0x2):"},
		{"dump-flows -O OpenFlow11 " + seedFiles, 1, `"OpenFlow11" is no version that entries are printed in; there are OpenFlow15 and OpenFlow10`},
		{"completion tcsh", 2, `there is no script for "tcsh"`},
		{"completion", 2, "a shell (bash, zsh or fish) is missing"},
		{"completion bash", 0, "complete -o default"},
		{"lab bogus", 2, `unknown command "bogus"`},
		{"conntrack bogus", 2, `unknown command "bogus"`},
		{"dump-flows --bogus", 2, "unknown flag"},
		{"flush-conntrack " + seedFiles, 2, "unknown flag: --flows"},
		{"flush-conntrack everything", 2, "one argument too many"},
		{"flush-conntrack -o xml", 2, "text, json or yaml"},
		{"flush-conntrack --socket /no/such.sock", 1, "no agent answers at /no/such.sock"},
		{"dump-conntrack --zone ten " + seedFiles, 1, `zone="ten" is not between 0 and 65535`},
		{"dump-flows a b", 2, "one argument too many"},
		{"dump-flows --names --no-names", 2, "--names and --no-names exclude each other"},
		{"dump-groups -o xml", 2, "text, json or yaml"},
		{"dump-groups --groups x", 2, "need --flows"},
		{"lab upgrade-test -o xml", 2, "table or json"},
		{"lab upgrade-test --connections 0", 2, "at least 1"},
		{"lab upgrade-test --driver tap", 2, "none of auto, afpacket and afxdp"},
		{"lab upgrade-test --driver afxdp --lab 00000", 2, "--lab excludes --driver"},
		{"lab upgrade-test --lab 00000", 1, "no lab is up"},
		{"lab up --nodes 0", 2, "--nodes must be 1 or 2"},
		{"agent", 2, "--config is missing"},
		{"check --node node-a", 2, "--node needs --live"},
		{"check --config /no/such.yaml", 1, "/no/such.yaml"},
		{"check --live --socket /no/such.sock", 1, "no agent answers at /no/such.sock"},
		{"check --live -o xml --socket /no/such.sock", 1, "no agent answers"},
		{"uninstall --socket /no/such.sock", 0, ""},
		{"agent --config x --log-level loud", 2, "loud"},
		{"replay x.pcap", 2, "one of --flows, --manifests and --program is needed"},
		{"get pods --manifests x", 2, "--manifests needs --node"},
		{"get pods --manifests examples/web-app", 2, "each Node has entries of its own; there are node-a, node-b\n"},
		{"get pods --manifests examples/web-app --node nod-a", 1, "there is no NodeConfig of that name (did you mean node-a?)"},
		{"get pods --manifests x --flows x", 2, "--flows and --manifests exclude each other"},
		{"get pods --manifests /no/such --node a", 1, "/no/such"},
		{"get pods --manifests control/testdata/seed --node nobody", 1, "nobody"},
		{"get pods " + seedFiles, 1, "the entries have no objects"},
		{"dut --ct-timeouts never", 2, "default or ovs"},
		{"trace " + seedFiles, 2, "FLOW is missing: antrail trace FLOW"},
		{"dump-flows --socket /no/such.sock", 1, "no such file or directory\nDoes an agent run here?"},
		{"dump-flows --flows /no/such.flows", 1, "/no/such.flows"},
		{"dump-flows --flows " + noGroup, 1, "antrail: " + noGroup + ": priority=1,ip actions=group:9: group 9 does not exist"},
		{"dump-flows Nonesuch " + seedFiles, 1, `there is no table "Nonesuch"`},
		{"dump-flows --node node-a", 1, "no lab is up; make one with: antrail lab up\n--node names a Node of a lab. Without it"},
		{"agent --config /no/such.yaml", 1, "/no/such.yaml"},
		{"trace show -o pcapng examples/two-nodes/walks.json", 2, "use -w FILE"},
		{"trace show -o xml -w " + noGroup + " examples/two-nodes/walks.json", 2, "there is no form"},
		{"trace show -o vpp -w - examples/two-nodes/walks.json", 0, ": ip4-input"},
		{"trace --live -o pcapng", 2, "use -w FILE"},
		{"trace -w x nw_src=1 " + seedFiles, 2, "flags of live traces need --live"},
		{"trace nw_src=1 " + seedFiles, 1, "IPv4 address"},
		{"pipeline " + nodeFiles, 0, "EndpointDNAT"},
		{"pipeline -o svg -w - --focus SNAT " + nodeFiles, 0, `class="table focus"`},
		{"pipeline -o dot " + seedFiles, 0, "digraph pipeline"},
		{"pipeline -o mermaid " + seedFiles, 0, "flowchart LR"},
		{"pipeline -o json --over 1ms " + seedFiles, 0, `"kinds": [`},
		{"pipeline -o text " + seedFiles, 2, "table, svg, dot, mermaid, json"},
		{"pipeline -o svg --theme pink " + seedFiles, 2, "auto, light or dark"},
		{"pipeline -o svg --packet in_port=1,arp " + nodeFiles, 0, `class="table on"`},
		{"pipeline -o svg --packet nw_src=1 " + nodeFiles, 1, "IPv4 address"},
		{"pipeline --packet in_port=1,arp " + nodeFiles, 2, "--packet needs -o svg"},
		{"pipeline --focus Nonesuch " + seedFiles, 1, `there is no table "Nonesuch"`},
		{"why default/client-a default/web-a:80 " + webApp, 0, "allowed: tcp 80 from default/client-a to default/web-a; "},
		{"why default/client-a default/db-b:3306 " + webApp, 1, "denied: on Node node-b, NetworkPolicy default/db-from-web isolates default/db-b for ingress, and no rule allows tcp 3306 from default/client-a\n"},
		{"why --udp default/web-b svc:default/sample-clusterip " + webApp, 2, "the Service's port is for TCP"},
		{"why -o yaml default/client-a default/web-a:80 --node node-a " + webApp, 0, "allowed: true"},
		{"why default/client-a default/web-a:80 --node nobody " + webApp, 2, "nobody"},
		{"why default/client-a svc:default/web-b-only --node node-b " + webApp, 0, "it goes to Node node-b through the tunnel; it reaches default/web-b\n"},
		{"why default/client-a " + webApp, 2, "TO is missing: antrail why FROM TO"},
		{"why --udp --icmp a b " + webApp, 2, "--icmp and --udp exclude each other"},
		{"why a/b c/d:1 --socket /no/such.sock", 2, "no such file or directory\nDoes an agent run here?"},
		{"top --view bogus", 2, "there are ports, workers, tables, rules, connections, drops, reasons"},
		{"top --every 1ns", 2, "at least 10ms"},
		{"top --plain --socket /no/such.sock", 1, "no agent answers at /no/such.sock"},
		{"lab status", 1, "no lab is up"},
		{"learn --list", 0, " 1  One table"},
		{"learn 1 send to-db --dir /no/such", 0, "to-db leaves the switch by web."},
		{"learn 2 --step --dir /no/such poison", 0, "So: poison leaves node-a by "},
		{"learn 1 check --dir /no/such", 1, "the lesson was not begun: antrail learn 1 makes /no/such/01-one-table"},
		{"learn 1 nonesuch", 2, "antrail learn 1 is followed by send, check, "},
		{"learn 1 chek", 2, "(did you mean check?)"},
		{"learn 1 to-db", 2, "antrail learn 1 send to-db"},
		{"learn 1 send --dir /no/such to-bd", 1, "(did you mean to-db?)"},
		{"learn 6 send shop wait=soon --dir /no/such", 1, "expected a time such as 30s"},
		{"learn 99", 2, `there is no lesson "99"`},
	} {
		t.Run(s.args, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(strings.Fields(s.args), &out, &out); code != s.code {
				t.Errorf("exit code %d, want %d", code, s.code)
			}
			if !strings.Contains(out.String(), s.want) {
				t.Errorf("no %q in\n%s", s.want, out.String())
			}
		})
	}
}

// TestHelp: every command says what it does, and by an example.
func TestHelp(t *testing.T) {
	var began bool
	walk(rootCommand(&began), func(c *cobra.Command) {
		if c.Short == "" || !strings.Contains(c.Example, "antrail") {
			t.Errorf("%s: short %q, example %q", c.CommandPath(), c.Short, c.Example)
		}
	})
}

func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && sub.Name() != "completion" {
			walk(sub, visit)
		}
	}
}

// TestExamples runs every example that needs no agent, lab or capture, and ends by
// itself.
func TestExamples(t *testing.T) {
	var began bool
	ran := 0
	walk(rootCommand(&began), func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(line, "--flows ") && !strings.Contains(line, "--manifests ") || strings.Contains(line, "pcap") || strings.Contains(line, "antrail lab ") || strings.Contains(line, "--serve") {
				continue
			}
			ran++
			args := shellWords(strings.TrimSpace(line))
			var out bytes.Buffer
			if code := run(args[1:], &out, &out); code != 0 || out.Len() == 0 && c.Name() != "dump-conntrack" {
				t.Errorf("%s: exit code %d\n%s", line, code, out.String())
			}
		}
	})
	if ran < 13 {
		t.Errorf("only %d examples ran", ran)
	}
}

// shellWords splits at blanks outside single quotes.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// TestTraceWrites has a capture in a file and in a pipe the same.
func TestTraceWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "walks.pcapng")
	var there, piped bytes.Buffer
	for to, out := range map[string]*bytes.Buffer{file: &there, "-": &piped} {
		if code := run([]string{"trace", "show", "-o", "pcapng", "-w", to, "examples/two-nodes/walks.json"}, out, out); code != 0 {
			t.Fatalf("-w %s: exit code %d\n%s", to, code, out.String())
		}
	}
	written, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(written, piped.Bytes()) || !bytes.Contains(written, []byte("node-a:client-a")) || there.Len() != 0 {
		t.Errorf("%v, %d bytes in the file, %d in the pipe, %q beside the file", err, len(written), piped.Len(), there.String())
	}
}

// TestCaptureKeepsFile: what cannot begin leaves an older capture as it was, and counts
// nothing; what begins replaces all of it.
func TestCaptureKeepsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "walks")
	const older = "an older capture, longer than what comes"
	for _, s := range []struct {
		args       []string
		code       int
		want, left string
	}{
		{[]string{"capture", "-w", file, "--socket", "/no/such.sock"}, 1, "no agent answers at /no/such.sock", older},
		{[]string{"trace", "--live", "--record", file, "--socket", "/no/such.sock"}, 1, "no agent answers at /no/such.sock", older},
		{[]string{"trace", "show", "-o", "json", "-w", file, "/dev/null"}, 0, "", ""},
	} {
		if err := os.WriteFile(file, []byte(older), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if code := run(s.args, &out, &out); code != s.code || !strings.Contains(out.String(), s.want) || strings.Contains(out.String(), "matched") {
			t.Errorf("%v: exit code %d\n%s", s.args, code, out.String())
		}
		if left, err := os.ReadFile(file); err != nil || string(left) != s.left {
			t.Errorf("%v: %v, the file has %q, want %q", s.args, err, left, s.left)
		}
	}
}

// TestReplayInJSON has a line for each recorded walk, and the count beside it.
func TestReplayInJSON(t *testing.T) {
	var out, beside bytes.Buffer
	args := append([]string{"trace", "replay", "-o", "json", "examples/two-nodes/walks.json"}, strings.Fields(nodeFiles)...)
	if code := run(args, &out, &beside); code != 0 || beside.String() != "0 of 5 walks would be different\n" {
		t.Fatalf("exit code %d, %q", code, beside.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, l := range lines {
		var r struct {
			ID, Then, Now string
			Same          bool
		}
		if err := json.Unmarshal([]byte(l), &r); err != nil || !r.Same || r.ID == "" || r.Then == "" || r.Then != r.Now {
			t.Errorf("%v: %s", err, l)
		}
	}
	if len(lines) != 5 {
		t.Errorf("%d lines", len(lines))
	}
}

// TestReplayOfOneNode: of a recording of two Nodes only the walks on the Node whose
// entries are asked are replayed, and the others are counted.
func TestReplayOfOneNode(t *testing.T) {
	one, err := os.ReadFile("examples/two-nodes/walks.json")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := strings.NewReplacer(`"node":"node-a"`, `"node":"node-b"`, `"ofPort":36`, `"ofPort":99`).Replace(string(one))
	file := filepath.Join(t.TempDir(), "walks.json")
	if err := os.WriteFile(file, []byte(string(one)+elsewhere), 0o600); err != nil {
		t.Fatal(err)
	}
	manifests := []string{"--manifests", "examples/two-nodes/objects"}
	flows := strings.Fields(nodeFiles)
	for _, s := range []struct {
		args []string
		code int
		want string
	}{
		{append(manifests, "--node", "node-a"), 0, "0 of 5 walks would be different\n5 walks on node-b were left out; --on node-b replays them, on entries of that Node\n"},
		{append(flows, "--on", "node-a"), 0, "0 of 5 walks would be different\n5 walks on node-b were left out; --on node-b replays them, on entries of that Node\n"},
		{append(flows, "--on", "node-c"), 1, "the recording has no walk on node-c; it has walks on node-a, node-b: choose one by --on"},
		{flows, 2, "the recording has walks on node-a and on node-b: choose one by --on"},
	} {
		var out bytes.Buffer
		code := run(append([]string{"trace", "replay", file}, s.args...), &out, &out)
		if code != s.code || !strings.Contains(out.String(), s.want) {
			t.Errorf("%v: exit code %d, want %d with %q\n%s", s.args, code, s.code, s.want, out.String())
		}
	}
}

func TestExampleTrace(t *testing.T) {
	var out bytes.Buffer
	args := append([]string{"trace", strings.Trim(examplePacket, "'")}, strings.Fields(nodeFiles)...)
	if code := run(args, &out, &out); code != 0 || !strings.Contains(out.String(), "Verdict: output to port") {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
}

// TestLabCommands goes through the life of a lab as a user would.
func TestLabCommands(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a lab needs root")
	}
	dir := reaptest.LabDir(t)
	t.Setenv("ANTRAIL_LAB_DIR", dir)
	t.Setenv(asBinary, "1")
	t.Cleanup(func() { antrail(t, "lab", "down") })

	if out, code := antrail(t, "lab", "up"); code != 0 || !strings.Contains(out, "client-b") {
		t.Fatalf("lab up: exit code %d\n%s", code, out)
	}
	out, _ := antrail(t, "lab", "status", "-o", "json")
	var s lab.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.State != "up" || len(s.Nodes) != 2 || s.Nodes[0].Agent != "ready" {
		t.Errorf("lab status: %v\n%s", err, out)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"lab", "exec", "client-a", "--", "sh", "-c", "cat /proc/net/fib_trie; exit 7"}, 7, "10.10.0.26"},
		{[]string{"lab", "exec", "node-b", "cat", "/proc/net/route"}, 0, "antrea-gw0"},
		{[]string{"lab", "exec", "nobody", "--", "true"}, 1, `no "nobody"`},
		{[]string{"dump-ports", "--node", "node-b", "--names"}, 0, `port "client-b": rx pkts=`},
		{[]string{"dump-flows", "--socket", s.Nodes[0].Socket, "ARPSpoofGuard"}, 0, "n_packets="},
		{[]string{"pipeline", "--node", "node-a", "--over", "10ms"}, 0, "IngressSecurityClassifier, Output"},
		{[]string{"trace", "--node", "node-a", strings.Trim(examplePacket, "'")}, 0, "Verdict: output to port"},
		{[]string{"why", "--node", "node-a", "default/client-a", "svc:default/web-b-only"}, 0, "it goes to Node node-b through the tunnel; it reaches default/web-b\n"},
		{[]string{"why", "--socket", s.Nodes[0].Socket, "default/client-a", "svc:default/web-b-only"}, 2, "undecided: tcp 80 from default/client-a"},
		{[]string{"why", "--socket", s.Nodes[0].Socket, "-o", "json", "default/client-a", "svc:default/web-b-only"}, 2, "\"undecided\": true"},
		{[]string{"drops", "--node", "node-a", "--pod", "default/client"}, 1, "there is default/client-a, default/client-b"},
		{[]string{"drops", "--node", "node-a", "--pod", "default/client-b"}, 0, "is on Node node-b"},
		{[]string{"capture", "--node", "node-a", "--port", "eth9", "-w", "-"}, 1, "antrail: there is no port \"eth9\""},
		{[]string{"top", "--node", "node-a", "--count", "1", "--every", "50ms"}, 0, "default/client-a"},
		{[]string{"top", "--node", "node-a", "--count", "1", "--every", "50ms", "--view", "rules"}, 0, "acnp/web-app-db-network-policy"},
		{[]string{"drops", "--sums", "--node", "node-a"}, 0, "total"},
		{[]string{"drops", "--sums", "--node", "node-b"}, 0, "total"},
	} {
		if out, code := antrail(t, c.args...); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("antrail %v: exit code %d, want %d and %q in\n%s", c.args, code, c.code, c.want, out)
		}
	}
	pasteStart(t, s.Nodes[0].PID)
	if out, code := antrail(t, "lab", "down"); code != 0 || !strings.Contains(out, "is down") {
		t.Errorf("lab down: exit code %d\n%s", code, out)
	}
	if left, err := filepath.Glob(dir + "/*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// pasteStart kills the agent of node-a, and has a shell in another directory, without a
// PATH to the program, run the command that lab status gives then. The agent that it
// starts becomes ready.
func pasteStart(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	status := func() (s lab.Status) {
		out, _ := antrail(t, "lab", "status", "-o", "json")
		if err := json.Unmarshal([]byte(out), &s); err != nil || len(s.Nodes) != 2 {
			t.Fatalf("lab status: %v\n%s", err, out)
		}
		return s
	}
	command, end := "", time.Now().Add(time.Minute)
	for ; command == "" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		_, command, _ = strings.Cut(status().Nodes[0].Agent, "to start another: ")
	}
	shell := exec.Command("sh", "-c", "unset ANTRAIL_LAB_DIR; PATH=/usr/sbin:/usr/bin:/sbin:/bin; "+command)
	var said bytes.Buffer
	shell.Dir, shell.Stdout, shell.Stderr = "/", &said, &said
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- shell.Wait() }()
	t.Cleanup(func() { shell.Process.Kill() })
	for status().Nodes[0].Agent != "ready" {
		select {
		case err := <-ended:
			t.Fatalf("%s: %v\n%s", command, err, said.String())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("%s: the agent is not ready: %s", command, status().Nodes[0].Agent)
		}
	}
}

// antrail runs the program as a process.
func antrail(t *testing.T, args ...string) (string, int) {
	t.Helper()
	out, err := exec.Command(os.Args[0], args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		return string(out), exit.ExitCode()
	}
	return string(out), 0
}
