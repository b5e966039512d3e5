//go:build linux && !portable

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/control/store"
)

// ids are numbers that follow from the order of the objects: they may differ
// between dumps of one pipeline. That they fit together is tested where they
// are given (package control).
var ids = []struct {
	in *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`^ *(cookie=0x[0-9a-f]+, )?`), ""},
	{regexp.MustCompile(`\bid=\d+(,userdata)`), "id=N$1"},
	{regexp.MustCompile(`\b(conjunction\(|conj_id=|group:|group_id=)\d+`), "${1}N"},
	{regexp.MustCompile(`0x[0-9a-f]+(/0x(f{8}|f{8}0{8}|f{3}0{16})->ct_label)`), "N$1"},
	{regexp.MustCompile(`(ct_label=)0x[0-9a-f]+(/0x(f{8}|f{8}0{8})\b)`), "${1}N$2"},
	{regexp.MustCompile(`(table=\w*Rule,.*set_field:)0x[0-9a-f]+(->reg6)`), "${1}N$2"},
	{regexp.MustCompile(`(table=\w*Rule,.*set_field:)0x[0-9a-f]+(->reg[35])`), "${1}N$2"},
	{regexp.MustCompile(`(table=\w*Metric,.*reg3=)0x[0-9a-f]+`), "${1}N"},
	{regexp.MustCompile(`0x[0-9a-f]+(->reg7\b)`), "N$1"},
	{regexp.MustCompile(`(cookie=0x[0-9a-f]+0300)[0-9a-f]{8}\b`), "${1}N"}, // of a learn action
}

// countLines counts the entries and groups of a dump, without their ids.
func countLines(dump string) map[string]int {
	count := map[string]int{}
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		for _, id := range ids {
			line = id.in.ReplaceAllString(line, id.as)
		}
		if strings.HasPrefix(line, "table=") || strings.HasPrefix(line, "group_id=") {
			count[line]++
		}
	}
	return count
}

// TestGoldenObjects dumps a Node's objects and compares with the entries and
// groups that Antrea installs in Open vSwitch for them.
func TestGoldenObjects(t *testing.T) {
	files, err := filepath.Glob("tables/testdata/golden/tables/*.flows")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden tables: %v", err)
	}
	var golden []byte
	for _, f := range append(files, "tables/testdata/golden/groups.txt") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		golden = append(golden, b...)
	}
	sameLines(t, dumpOf(t, seedObjects), canonicalLines(string(golden)))
}

// bucketOrder matches the bucket ids of a group, in which two dumps may differ.
var bucketOrder = regexp.MustCompile(`bucket_id:\d+,`)

// entryByHand knows what the Node itself sends to its pods by the gateway's
// address. Antrea's own, which the objects make, knows it by its mark.
const entryByHand = "table=IngressSecurityClassifier, priority=210,ct_state=-rpl+trk,ip,reg0=0x2/0xf,nw_src=10.10."

// TestObjectsOfTwoNodes: the objects in examples/two-nodes make the entries and
// groups that are written by hand beside them.
func TestObjectsOfTwoNodes(t *testing.T) {
	for _, node := range []string{"node-a", "node-b"} {
		have := dumpOf(t, "--manifests examples/two-nodes/objects --node "+node)
		want := dumpOf(t, "--flows examples/two-nodes/"+node+".flows")
		for line := range maps.Keys(want) {
			if strings.HasPrefix(line, entryByHand) {
				delete(want, line)
			}
		}
		if len(want) < 120 {
			t.Errorf("%s has only %d different lines", node, len(want))
		}
		sameLines(t, have, want)
	}
}

// TestWebAppHasAllOfTheSeed: each object of the seed is in examples/web-app, by its
// kind and name, and on node-a every one is installed.
func TestWebAppHasAllOfTheSeed(t *testing.T) {
	cluster, problems, err := store.LoadManifests("examples/web-app")
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	seed, _, err := store.LoadManifests("control/testdata/seed")
	if err != nil {
		t.Fatal(err)
	}
	keys := slices.Concat(
		slices.Collect(maps.Keys(seed.Services)), slices.Collect(maps.Keys(seed.NetworkPolicies)), slices.Collect(maps.Keys(seed.AntreaPolicies)), slices.Collect(maps.Keys(seed.Egresses)),
		slices.Collect(maps.Keys(seed.TrafficControls)))
	for _, k := range keys {
		if cluster.Object(k) == nil {
			t.Errorf("there is no %s", k)
		}
	}
	if len(keys) < 14 {
		t.Errorf("the seed has only %v", keys)
	}
	for _, kind := range []string{"policies", "services", "egresses", "pods", "trafficcontrols"} {
		var out bytes.Buffer
		if code := run(strings.Fields("get "+kind+" --manifests examples/web-app --node node-a"), &out, &out); code != 0 {
			t.Fatalf("exit code %d\n%s", code, out.String())
		}
		if strings.Contains(out.String(), "pending") || strings.Contains(out.String(), "refused") {
			t.Errorf("not all is installed:\n%s", out.String())
		}
	}
}

// dumpOf counts the lines of a pipeline.
func dumpOf(t *testing.T, from string) map[string]int {
	t.Helper()
	var out bytes.Buffer
	for _, command := range []string{"dump-flows --names --no-stats ", "dump-groups --names "} {
		if code := run(strings.Fields(command+from), &out, &out); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", command+from, code, out.String())
		}
	}
	return canonicalLines(out.String())
}

// canonicalLines are the lines of a dump without ids, groups with their buckets
// in one order.
func canonicalLines(dump string) map[string]int {
	count := map[string]int{}
	for line, n := range countLines(dump) {
		if strings.HasPrefix(line, "group_id=") {
			buckets := strings.Split(bucketOrder.ReplaceAllString(line, ""), ",bucket=")
			slices.Sort(buckets[1:])
			line = strings.Join(buckets, ",bucket=")
		}
		count[line] += n
	}
	return count
}

func sameLines(t *testing.T, have, want map[string]int) {
	t.Helper()
	for line, n := range want {
		if have[line] != n {
			t.Errorf("%d times, want %d: %s", have[line], n, line)
		}
	}
	for line := range have {
		if want[line] == 0 {
			t.Errorf("not wanted: %s", line)
		}
	}
}

// TestManifestCommands asks a Node's objects.
func TestManifestCommands(t *testing.T) {
	for _, s := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"get", "services"}, 0, "default    sample-clusterip  "},
		{[]string{"get", "pods"}, 0, "web-7975-274540  37      egress,ingress"},
		{[]string{"get", "policies"}, 0, "application  5         4 "},
		{[]string{"get", "egresses", "-o", "yaml"}, 0, "object: Egress/egress-web\n"},
		{[]string{"get", "trafficcontrols"}, 0, "redirect-web-to-local  Redirect  Both       antrea-tc-tap0  antrea-tc-tap1  1 "},
		{[]string{"get", "pods", "-o", "json"}, 0, `"object": "Pod/default/client-6",`},
		{[]string{"get", "policies", "-o", "wide"}, 0, "web-app-db-network-policy             Ingress    ingress[1]         Drop    14499     0 "},
		{[]string{"get", "policies", "-o", "json"}, 0, `"action": "Drop",`},
		{[]string{"dump-tables", "-o", "wide"}, 2, "--output is text, json or yaml"},
		{[]string{"get", "nonsense"}, 2, `there is nothing called "nonsense"`},
		{[]string{"explain", "service/default/sample-clusterip"}, 0, "sample-clusterip: installed, 4 entries\n"},
		{[]string{"explain", "group_id=10"}, 0, "    Service/default/sample-clusterip spec.ports[0]\n"},
		{[]string{"explain", "group_id=99"}, 1, "there is no group 99"},
		{[]string{"explain", "-o", "json", " cookie=0x0, duration=1.5s, table=IngressRule, n_packets=3, n_bytes=4, idle_age=0, priority=0 actions=goto_table:IngressDefaultRule"}, 0, `"object": "NodeConfig/k8s-node-control-plane"`},
		{[]string{"explain", "table=IngressRule,priority=7,tcp"}, 1, "no object wants an entry"},
		{[]string{"explain", "Pod/default/nobody"}, 1, "Pod/default/nobody does not concern this Node"},
		{[]string{"explain", "Service/default/sample-clustrip"}, 1, "Service/default/sample-clustrip does not concern this Node (did you mean sample-clusterip?)"},
		{[]string{"explain", "Sheep/dolly"}, 1, `there is no kind "Sheep"`},
		{[]string{"explain", "Pod/a/b/c"}, 1, "KIND/NAMESPACE/NAME"},
		{[]string{"trace", `in_port="client-6-3353ef",tcp,dl_src=5e:b5:e3:a6:90:b7,dl_dst=ba:5e:d1:55:aa:c0,nw_src=10.10.0.26,nw_dst=10.105.31.235,tp_dst=80`}, 0, "group:10"},
		{[]string{"dump-meters"}, 0, "meter=256 pktps burst"},
	} {
		t.Run(strings.Join(s.args, " "), func(t *testing.T) {
			var out bytes.Buffer
			if code := run(append(s.args, strings.Fields(seedObjects)...), &out, &out); code != s.code {
				t.Errorf("exit code %d, want %d", code, s.code)
			}
			if !strings.Contains(out.String(), s.want) {
				t.Errorf("no %q in\n%s", s.want, out.String())
			}
		})
	}
}

// TestBadManifest: an error names file and line, and the other objects are in force.
func TestBadManifest(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("control/testdata/seed")); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.yaml")
	text := "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 70000}]}\n"
	if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, problems bytes.Buffer
	args := []string{"get", "services", "--manifests", dir, "--node", "k8s-node-control-plane"}
	if code := run(args, &out, &problems); code != 0 || !strings.Contains(out.String(), "sample-clusterip") {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
	if got := problems.String(); !strings.HasPrefix(got, bad+":") || !strings.Contains(got, "70000") {
		t.Errorf("problems: %s", got)
	}
}
