package tables

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestGolden makes the scenario's entries, groups and meters and compares them
// with the dump of the Open vSwitch that Antrea programmed for it.
func TestGolden(t *testing.T) {
	prog := goldenProgram(goldenConfig())
	want := goldenLines(t, "tables/*.flows")
	if len(want) != 175 {
		t.Fatalf("the golden dump has %d entries", len(want))
	}
	compareLines(t, want, lines(t, prog.Entries, prog.Names))
	compareLines(t, goldenLines(t, "groups.txt"), groupLines(prog))
	text, err := os.ReadFile("testdata/golden/meters.txt")
	if err != nil {
		t.Fatal(err)
	}
	var meters []string
	for _, m := range prog.Meters {
		meters = append(meters, strings.TrimSpace(m.Text()))
	}
	if got := strings.Join(meters, "\n\n"); got != strings.TrimSpace(string(text)) {
		t.Errorf("meters:\n%s", got)
	}
}

// TestGoldenV2 does the same with Antrea v2. Its dump has no rule that redirects;
// testdata/l7-v2.flows has the entries of such a rule.
func TestGoldenV2(t *testing.T) {
	c := goldenConfig()
	c.Release = V2
	prog := goldenProgram(c)
	want := goldenLines(t, "v2/*.flows")
	for i := range want {
		want[i] = strings.Replace(want[i], "id=PID", "id=62373", 1)
	}
	compareLines(t, want, lines(t, prog.Entries, prog.Names))
	compareLines(t, goldenLines(t, "groups.txt"), groupLines(prog))
	compareText(t, "l7-v2.flows", strings.Join(lines(t, New(c).L7Redirection(), prog.Names), "\n")+"\n")
	if New(goldenConfig()).L7Redirection() != nil {
		t.Error("v1.15 has more entries for a rule that redirects")
	}
}

// TestReleases: a release has a name, and its own defaults.
func TestReleases(t *testing.T) {
	for name, want := range map[string][3]uint32{"": {2, 1, 500}, "v1.15": {2, 1, 500}, "v2": {32769, 32768, 5000}} {
		r, err := ParseRelease(name)
		if got := [3]uint32{r.GatewayNo(), r.TunnelNo(), r.PacketInRate()}; err != nil || got != want || name != "" && r.String() != name {
			t.Errorf("%q is %v: %v, %v; want %v", name, r, got, err, want)
		}
	}
	if _, err := ParseRelease("v1.14"); err == nil || err.Error() != `"v1.14" is neither v1.15 nor v2` {
		t.Errorf("v1.14: %v", err)
	}
}

// TestCookies: a cookie tells the round and the part of the pipeline; that of a
// learning entry the group too. The categories are those of Antrea v1.15.
func TestCookies(t *testing.T) {
	checkCookies(t, goldenConfig(), map[string]uint64{
		"table=Output, priority=0 actions=drop":                       0x2000000000000,
		"table=PipelineRootClassifier, priority=200,arp actions=":     0x2000000000000,
		"table=PipelineRootClassifier, priority=200,ip actions=":      0x2000000000000,
		"table=ConntrackState, priority=0 actions=":                   0x2010000000000,
		"table=TrafficControl, priority=210,reg0=0x200006/0x60000f ":  0x2020000000000,
		"table=ARPResponder, priority=190,arp actions=NORMAL":         0x2010000000000,
		"table=IngressDefaultRule, priority=200,reg1=0x25 actions=dr": 0x2020000000000,
		"table=SessionAffinity, priority=0 actions=":                  0x2030000000000,
		"table=ServiceLB, priority=190,tcp,reg4=0x30000/0x70000":      0x203000000000b,
		"table=EgressMark, priority=0 actions=":                       0x2040000000000,
	})
	c := goldenConfig()
	c.Features.L7Policy = false
	checkCookies(t, c, map[string]uint64{"table=TrafficControl, priority=210,reg0=0x200006/0x60000f ": 0x2010000000000})
	c.CookieRound = 0
	for _, e := range goldenProgram(c).Entries {
		if e.Cookie != 0 {
			t.Fatalf("a cookie without a round: %s", e)
		}
	}
}

// checkCookies looks for the entries whose lines begin in some way, and compares
// their cookies.
func checkCookies(t *testing.T, c Config, want map[string]uint64) {
	t.Helper()
	prog := goldenProgram(c)
	for prefix, cookie := range want {
		found := false
		for _, e := range prog.Entries {
			bare := *e
			bare.Cookie = 0
			if strings.HasPrefix(strings.TrimSpace(bare.Text(flow.Format{Names: prog.Names})), prefix) {
				found = true
				if e.Cookie != cookie {
					t.Errorf("%s: cookie %#x, want %#x", prefix, e.Cookie, cookie)
				}
			}
		}
		if !found {
			t.Errorf("no entry %s", prefix)
		}
	}
}

func groupLines(prog *flow.Program) (all []string) {
	for _, g := range prog.Groups {
		all = append(all, strings.TrimSpace(g.Text(prog.Names)))
	}
	return all
}

func goldenLines(t *testing.T, pattern string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata/golden", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files %s: %v", pattern, err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSpace(string(text)), "\n")...)
	}
	return all
}

// compareLines compares two sets of lines and shows the missing (-) and the
// surplus ones (+).
func compareLines(t *testing.T, want, got []string) {
	t.Helper()
	for _, l := range slices.Sorted(slices.Values(want)) {
		if !slices.Contains(got, l) {
			t.Errorf("- %s", l)
		}
	}
	for _, l := range slices.Sorted(slices.Values(got)) {
		if !slices.Contains(want, l) {
			t.Errorf("+ %s", l)
		}
	}
	if len(want) != len(got) && !t.Failed() {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}
