package openflow

import (
	"fmt"
	"iter"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/tables"
)

// golden are the entries, groups and meters of Antrea's pipeline on a real Node, and entries
// with all matches and actions.
func golden(t testing.TB) *flow.Program {
	t.Helper()
	names := tables.New(tables.Config{
		Features: tables.Features{Proxy: true, ProxyAll: true, AntreaPolicy: true, Egress: true, TrafficControl: true, L7Policy: true},
		PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24")},
	}).Names()
	var text strings.Builder
	files, err := filepath.Glob("../../tables/testdata/golden/tables/*.flows")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	file := func(name string) parse.Source {
		s, err := parse.File(name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	p, err := parse.Program(parse.Sources{
		Flows: parse.Text("golden", text.String()), Names: names,
		Groups: file("../../tables/testdata/golden/groups.txt"), Meters: file("../../tables/testdata/golden/meters.txt"),
	})
	if err != nil {
		t.Fatal(err)
	}
	more, err := parse.Program(parse.Sources{Flows: file("testdata/entries.flows")})
	if err != nil {
		t.Fatal(err)
	}
	p.Entries = append(p.Entries, more.Entries...)
	return p
}

// ofpParse is the text that ovs-ofctl prints for messages, without the first line of each.
func ofpParse(t *testing.T, messages []byte) []string {
	t.Helper()
	if _, err := exec.LookPath("ovs-ofctl"); err != nil {
		t.Skip("Open vSwitch is not installed: no ovs-ofctl")
	}
	name := filepath.Join(t.TempDir(), "messages")
	if err := os.WriteFile(name, messages, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ovs-ofctl", "--no-names", "ofp-parse", name).CombinedOutput()
	if err != nil {
		t.Fatalf("ofp-parse: %v: %s", err, out)
	}
	return strings.Split(strings.TrimRight(string(out), "\n"), "\n")
}

// pages are the messages of an answer.
func pages(t *testing.T, v Version, q *Request, parts iter.Seq[Part]) (all []byte) {
	t.Helper()
	for b, err := range Pages(v, 7, q, parts) {
		if err != nil {
			t.Fatalf("%s: %v", v, err)
		}
		all = append(all, b...)
	}
	return all
}

// flowParts are entries as parts of an answer.
func flowParts(entries []*flow.Entry) iter.Seq[Part] {
	return func(yield func(Part) bool) {
		for _, e := range entries {
			if !yield(&FlowStats{Entry: e, Packets: 3, Bytes: 300, Duration: 1500 * time.Millisecond}) {
				return
			}
		}
	}
}

// TestFlowStatsAreRead has ovs-ofctl read entries that we wrote: in OpenFlow 1.0 and 1.5 their
// text is ours to the byte.
func TestFlowStatsAreRead(t *testing.T) {
	p := golden(t)
	for v, how := range map[Version]flow.Version{V10: flow.OpenFlow10, V15: flow.OpenFlow15} {
		q := &Request{Kind: StatsFlow, NX: v == V10}
		lines := ofpParse(t, pages(t, v, q, flowParts(p.Entries)))
		lines = slices.DeleteFunc(lines, func(l string) bool { return !strings.HasPrefix(l, " ") })
		if len(lines) != len(p.Entries) {
			t.Fatalf("%s: %d lines of %d entries: %q", v, len(lines), len(p.Entries), lines)
		}
		for i, e := range p.Entries {
			stats := flow.Stats{Packets: 3, Bytes: 300, Duration: 1500 * time.Millisecond, Hard: 1500 * time.Millisecond}
			want := e.Text(flow.Format{Stats: &stats, Version: how})
			want = strings.ReplaceAll(want, "idle_age=0, ", "")
			if got := strings.ReplaceAll(lines[i], "idle_age=0, ", ""); got != want {
				t.Errorf("%s:\n got %s\nwant %s", v, got, want)
			}
		}
	}
}

// TestFlowModsComeBack encodes entries and decodes them: they have the same text.
func TestFlowModsComeBack(t *testing.T) {
	p := golden(t)
	for _, v := range []Version{V13, V14, V15} {
		for _, e := range p.Entries {
			b, err := Encode(Message{v, 5, &FlowMod{Entry: *e, OutPort: flow.PortNone, OutGroup: AnyGroup}})
			if err != nil {
				t.Fatalf("%s: %s: %v", v, e, err)
			}
			m, err := Decode(b)
			if err != nil {
				t.Fatalf("%s: %s: %v", v, e, err)
			}
			got := m.Body.(*FlowMod).Entry
			if got.Match != e.Match {
				t.Errorf("%s: match %s, want %s", v, got.Match.Text(nil), e.Match.Text(nil))
			}
			if v == V15 && got.String() != e.String() {
				t.Errorf("%s:\n got %s\nwant %s", v, got.String(), e)
			}
		}
	}
}

// names10 are errors that have another name in OpenFlow 1.0.
var names10 = map[ErrorKind]string{
	BadMatchType: "NXBRC_NXM_BAD_TYPE", BadMatchLength: "NXBRC_NXM_INVALID", FlowModUnknown: "OFPFMFC_UNSUPPORTED",
}

// TestErrorsAreNamed has ovs-ofctl name every error of every version.
func TestErrorsAreNamed(t *testing.T) {
	for _, v := range Versions {
		var all []byte
		for k := range numErrorKinds {
			b, err := Encode(Message{v, uint32(k), &ErrorReply{Kind: k, Data: []byte("refused message")}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b...)
		}
		text := strings.Join(ofpParse(t, all), "\n")
		for k := range numErrorKinds {
			want := k.sentAs(v).String()
			if name, ok := names10[k]; ok && v == V10 {
				want = name
			}
			if v == V10 && errorRows[k].v10 == unencodable {
				want = "NXBRC_UNENCODABLE_ERROR"
			}
			line := fmt.Sprintf("(xid=0x%x): %s\n", uint32(k), want)
			if !strings.Contains(text+"\n", line) {
				t.Errorf("%s: ovs-ofctl does not name %v (%v)", v, k, k.codeIn(v))
			}
		}
	}
}
