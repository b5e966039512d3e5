package door

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
)

// changed is a bundle with every kind of change.
func changed(t testing.TB) *flow.Bundle {
	t.Helper()
	prog, err := parse.Program(parse.Sources{
		Flows: parse.Text("flows", `table=0, cookie=0x5, priority=100,idle_timeout=5,in_port=1,ip actions=ct(table=1,zone=7)
table=0, priority=5,ip actions=learn(table=1,eth_type=0x800,NXM_OF_IP_SRC[]),controller(max_len=128,id=1)
table=1, priority=10,udp,tp_dst=53 actions=meter:1,group:4`),
		Groups: parse.Text("groups", "group_id=4,type=select,bucket=bucket_id:0,weight:100,actions=output:2"),
		Meters: parse.Text("meters", "meter=1 pktps burst stats bands=\ntype=drop rate=100 burst_size=200"),
	})
	if err != nil {
		t.Fatal(err)
	}
	prog.Names.SetTable(0, "Classifier")
	prog.Names.SetPort(1, "web")
	if err := prog.Names.SetTunnelOptions([]flow.TunnelOption{{Index: 2, Class: 0x102, Type: 0x80, Size: 4}}); err != nil {
		t.Fatal(err)
	}
	b := flow.BundleOf(prog)
	b.Delete, b.Add = b.Add[2:], b.Add[:2]
	b.DeleteGroups, b.DeleteMeters = []uint32{9}, []uint32{8}
	return b
}

// wantSame compares bundles by their text.
func wantSame(t testing.TB, a, b *flow.Bundle) {
	t.Helper()
	if x, y := string(AppendBundle(nil, a)), string(AppendBundle(nil, b)); x != y {
		t.Errorf("sent\n%s\nread\n%s", x, y)
	}
	if a.Replace != b.Replace || a.First != b.First || (a.Names == nil) != (b.Names == nil) || len(a.Add) != len(b.Add) || len(a.Delete) != len(b.Delete) ||
		len(a.Groups) != len(b.Groups) || len(a.Meters) != len(b.Meters) || !slices.Equal(a.DeleteGroups, b.DeleteGroups) || !slices.Equal(a.DeleteMeters, b.DeleteMeters) {
		t.Errorf("sent %+v\nread %+v", a, b)
	}
}

func TestBundleCrosses(t *testing.T) {
	sent := changed(t)
	read, err := ReadBundle(bytes.NewReader(AppendBundle(nil, sent)), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, sent, read)
	if read.Names.Table(0) != "Classifier" || read.Names.Port(1) != "web" || !slices.Equal(read.Names.TunnelOptions(), sent.Names.TunnelOptions()) {
		t.Error("names did not cross")
	}
}

// TestLongBundleCrosses: entries of many conjunctions and groups of many buckets take several
// lines, and are joined again.
func TestLongBundleCrosses(t *testing.T) {
	e := &flow.Entry{Table: 3, Priority: 7}
	g := &flow.Group{ID: 4}
	for i := range 1000 {
		e.Actions = append(e.Actions, flow.Conjunction{ID: uint32(i + 1), Clause: 1, N: 2})
		g.Buckets = append(g.Buckets, flow.Bucket{ID: uint32(i), Weight: 100})
	}
	text := AppendBundle(nil, &flow.Bundle{Add: []*flow.Entry{e}, Groups: []*flow.Group{g}})
	for line := range bytes.Lines(text) {
		if len(line) > maxLine {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
	read, err := ReadBundle(bytes.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Add) != 1 || len(read.Add[0].Actions) != 1000 || len(read.Groups) != 1 || len(read.Groups[0].Buckets) != 1000 {
		t.Errorf("%d entries, %d groups", len(read.Add), len(read.Groups))
	}
}

// TestLoadsCross: set_field takes no mask for nw_tos and nw_ttl, so a write of a part of them
// crosses as load.
func TestLoadsCross(t *testing.T) {
	const text = `group add group_id=1,type=all,bucket=bucket_id:0,actions=load:0x1->NXM_NX_IP_TTL[0],output:1
flow add table=3, ip actions=load:0x5->NXM_OF_IP_TOS[2..7],output:1
`
	b, err := ReadBundle(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ReadBundle(bytes.NewReader(AppendBundle(nil, b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, b, again)
	if flow.ActionsText(again.Add[0].Actions, flow.Format{}) != flow.ActionsText(b.Add[0].Actions, flow.Format{}) {
		t.Error("the actions are others")
	}
}

// TestDumpIsABundle: the output of dump-flows can be sent unchanged, with names and counters.
func TestDumpIsABundle(t *testing.T) {
	names := flow.NewNames()
	names.SetTable(10, "Output")
	names.SetPort(3, "web")
	b, err := ReadBundle(strings.NewReader(`OFPST_FLOW reply (OF1.5) (xid=0x2):
# the web server
 cookie=0x1, duration=5.123s, table=Output, n_packets=7, n_bytes=700, idle_age=1, priority=200,ip,in_port=web actions=drop
`), names)
	if err != nil || len(b.Add) != 1 || b.Add[0].Table != 10 || b.Names != nil {
		t.Fatalf("%+v, %v", b, err)
	}
}

// TestBundleRefused: the error names the line and the expected text.
func TestBundleRefused(t *testing.T) {
	for text, want := range map[string]string{
		"flow add table=0 actions=output:nowhere":       "line 1: ",
		"\nflow sub table=0 actions=drop":               `line 2: flow "sub": expected flow add or flow delete_strict`,
		"group delete 5":                                `line 1: "5" is not group_id=N`,
		"meter delete meter=x":                          `line 1: "meter=x" is not meter=N`,
		"flow add table=0 actions=nonsense\nport 3 web": "line 1: column",
		"table 300 X":                                   `line 1: table: "300" is not a number of 8 bits`,
		"port 3":                                        "line 1: port 3: the name is missing",
		`port 3 "web`:                                   "the quotes of a name are wrong",
		"first x":                                       `line 1: first: "x" is not a number`,
		"option 0 0x102 0x80":                           `line 1: option "0 0x102 0x80": expected option N CLASS TYPE SIZE`,
		"option 0 0x102 0x180 4":                        `line 1: option: "0x180" is not a number of 8 bits`,
		"option 8 0x102 0x80 4":                         "line 1: there is no field tun_metadata8",
		"option 0 0x102 0x80 12":                        "line 1: tun_metadata0: an option of 12 bytes; expected 4 or 8",
		"option 0 1 1 4\noption 1 1 1 4":                "line 2: tun_metadata1: the field or its option 0x1, 0x1 is given twice",
		"\nreplace this":                                `line 2: "this" behind "replace": expected the end of the line`,
		"first 0 junk":                                  `line 1: "junk" behind "first 0": expected the end of the line`,
		"hello":                                         "line 1: ",
		"flow add table=0,priority=1,ip,nw_dst=1.2.3.4 actions=" + strings.Repeat("output:1,", 9000): "longer than 65536 bytes",
	} {
		b, err := ReadBundle(strings.NewReader(text), nil)
		if err == nil || b != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// TestSameTextOtherActions: lines may have the same text of actions, but different actions by
// their matches or names.
func TestSameTextOtherActions(t *testing.T) {
	b, err := ReadBundle(strings.NewReader(`port 1 web
table=0,tcp actions=mod_tp_dst:80,output:web
port 2 web
table=0,udp actions=mod_tp_dst:80,output:web
table=1,udp actions=mod_tp_dst:80,output:web
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"set_field:80->tcp_dst,output:1", "set_field:80->udp_dst,output:2", "set_field:80->udp_dst,output:2"}
	for i, e := range b.Add {
		if got := flow.ActionsText(e.Actions, flow.Format{}); got != want[i] {
			t.Errorf("entry %d: %s, want %s", i, got, want[i])
		}
	}
	if &b.Add[1].Actions[0] != &b.Add[2].Actions[0] {
		t.Error("equal actions are two lists")
	}
}

// goldenPipelines are the pipelines of the repository's test data and examples, by path.
func goldenPipelines(t *testing.T) map[string]*flow.Program {
	t.Helper()
	all := map[string]*flow.Program{}
	for _, pattern := range []string{"../examples/*/*", "../flow/parse/testdata/golden/*"} {
		paths, err := filepath.Glob(pattern + ".flows")
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s.flows: %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			src := parse.Sources{}
			for ending, into := range map[string]*parse.Source{".flows": &src.Flows, ".groups": &src.Groups, ".meters": &src.Meters, ".ports": &src.Ports} {
				if file := strings.TrimSuffix(path, ".flows") + ending; exists(file) {
					if *into, err = parse.File(file); err != nil {
						t.Fatal(err)
					}
				}
			}
			if all[path], err = parse.Program(src); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
	return all
}

// TestGoldenPipelinesCross sends the pipelines of the repository's test data. Each entry arrives
// unchanged.
func TestGoldenPipelinesCross(t *testing.T) {
	most := 0
	for path, prog := range goldenPipelines(t) {
		most = max(most, len(prog.Entries))
		sent := flow.BundleOf(prog)
		read, err := ReadBundle(bytes.NewReader(AppendBundle(nil, sent)), nil)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		wantSame(t, sent, read)
		for i, e := range sent.Add {
			if !reflect.DeepEqual(e, read.Add[i]) {
				t.Fatalf("%s: sent %v\nread %v", path, e, read.Add[i])
			}
		}
	}
	if most < 150 {
		t.Errorf("the largest pipeline has %d entries", most)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// FuzzReadBundle: a bundle that is read and written reads the same again.
func FuzzReadBundle(f *testing.F) {
	f.Add(string(AppendBundle(nil, changed(f))))
	f.Add("table 4 X\nfirst 4\nflow delete_strict table=X,priority=3\nmeter add meter=1 kbps bands=type=drop rate=5")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < maxLine { // readByLine does not bound lines
			wantTwin(t, text)
		}
		b, err := ReadBundle(strings.NewReader(text), nil)
		if err != nil {
			return
		}
		again, err := ReadBundle(bytes.NewReader(AppendBundle(nil, b)), nil)
		if err != nil {
			t.Fatalf("%v:\n%s", err, AppendBundle(nil, b))
		}
		wantSame(t, b, again)
	})
}
