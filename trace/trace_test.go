package trace

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/printable"
)

// recorded are the ways of examples/two-nodes/walks.json.
func recorded(t testing.TB) (ways []Joined) {
	t.Helper()
	f, err := os.Open("../examples/two-nodes/walks.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Read(f, func(j Joined) error { ways = append(ways, j); return nil }); err != nil {
		t.Fatal(err)
	}
	return ways
}

// printed are ways in a form.
func printed(t *testing.T, form string, ways []Joined) string {
	t.Helper()
	var b bytes.Buffer
	p, err := NewPrinter(form, &b)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range ways {
		if err := p.Print(way); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.End(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestForms prints a recording in every form.
func TestForms(t *testing.T) {
	ways := recorded(t)
	for form, want := range map[string][]string{
		FormTree:    {"tcp 10.10.0.27:1001 > 10.10.0.24:80 syn, 54 bytes on node-a", "├─ SpoofGuard: priority 0", "└─ dropped in table SpoofGuard (entry)"},
		FormOFProto: {" 4. SpoofGuard: priority 0", "Verdict: output to port 2 (\"antrea-gw0\")"},
		FormPaths:   {"3× first tcp 10.10.0.26:1000 > 10.10.0.24:80 syn\n  node-a: client-a (36) → ", "1× first tcp 10.10.0.27:1001"},
		FormVPP:     {": L3DecTTL\n", "  00000000: aabbccddeeffba5ed155aac0080045000028000000003f06", ": error-drop\n  entry: A flow entry"},
		FormJSON:    {`"verdict":{"text":"dropped in table SpoofGuard`},
	} {
		got := printed(t, form, ways)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%.3000s", form, w, got)
			}
		}
	}
	if _, err := NewPrinter("xml", nil); err == nil || !strings.Contains(err.Error(), "there are tree, ofproto") {
		t.Errorf("an unknown form: %v", err)
	}
	var again []Joined
	if err := Read(strings.NewReader(printed(t, FormJSON, ways)), func(j Joined) error { again = append(again, j); return nil }); err != nil {
		t.Fatal(err)
	}
	if a, b := printed(t, FormTree, ways), printed(t, FormTree, again); a != b {
		t.Error("a recording that is written again is another one")
	}
}

// TestReadRefuses: an error names the packet at which a recording is wrong.
func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"[{}]\n[]":                        "packet 2",
		"[null]":                          "packet 1",
		`[{"steps":[{"kind":"ct"}]}]`:     "packet 1",
		`[{"steps":[{"kind":"output"}]}]`: "packet 1",
		"[{}]\n[{":                        "packet 2",
	} {
		if err := Read(strings.NewReader(text), func(Joined) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzRead prints everything that can be read.
func FuzzRead(f *testing.F) {
	b, err := os.ReadFile("../examples/two-nodes/walks.json")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var ways []Joined
		Read(bytes.NewReader(b), func(j Joined) error { ways = append(ways, j); return nil })
		for _, form := range Forms() {
			if text := printed(t, form, ways); form != FormPcapng {
				wantPlain(t, form, text)
			}
		}
	})
}

// wantPlain fails if a text has control characters for terminals.
func wantPlain(t *testing.T, form, text string) {
	t.Helper()
	if printable.Lines(text) != text {
		t.Errorf("%s: a terminal would obey %q", form, text)
	}
}

// TestReadHostile: no form prints texts of a recording raw to a terminal, or as
// lines of their own. Too large recordings are refused.
func TestReadHostile(t *testing.T) {
	const bad = `\u001b]0;mine\u0007\r\n\u009b2J\u202e`
	b, err := os.ReadFile("../examples/two-nodes/walks.json")
	if err != nil {
		t.Fatal(err)
	}
	texts := regexp.MustCompile(`"(node|name|pod|src|dst|table|action|reason|sentence|match|cookie|actions|object|field|rule|before|after|state|label|end|packet|text|id)":"`)
	hostile := texts.ReplaceAllString(string(b), "$0"+bad)
	var ways []Joined
	if err := Read(strings.NewReader(hostile), func(j Joined) error { ways = append(ways, j); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, form := range Forms() {
		if form == FormPcapng {
			continue
		}
		text := printed(t, form, ways)
		wantPlain(t, form, text)
		if strings.Contains(text, "\n]0;mine") || form != FormPaths && !strings.Contains(text, "mine") {
			t.Errorf("%s: %.500s", form, text)
		}
	}
	for want, text := range map[string]string{
		"nested too deep":              `[{"steps":[{"kind":"entry","depth":1000000000}]}]`,
		"packet 1: it is longer than":  `[{"node":"` + strings.Repeat("a", longestWay) + `"}]`,
		"packet 2: it is longer than ": "[{}]\n" + strings.Repeat(" ", longestWay+1000),
	} {
		if err := Read(strings.NewReader(text), func(Joined) error { return nil }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

// walkOf is a walk with an id. carried: it left by a tunnel.
func walkOf(id string, carried, followed bool) *Walk {
	w := &Walk{ID: id, Followed: followed, Time: time.Unix(int64(len(id)), 0)}
	if carried {
		w.Steps = []Step{{Kind: StepOutput, Port: &Port{No: 1}, Tunnel: &Tunnel{}}}
	}
	return w
}

// TestJoiner joins walks in any order of arrival, and waits no longer than Wait.
func TestJoiner(t *testing.T) {
	now := time.Unix(100, 0)
	j := Joiner{Wait: time.Second}
	if got := j.Add(walkOf("a", false, false), now); len(got) != 1 {
		t.Errorf("a walk that ends on its Node: %v", got)
	}
	if got := j.Add(walkOf("b", true, false), now); got != nil {
		t.Errorf("half a walk: %v", got)
	}
	if got := j.Add(walkOf("c", false, true), now); got != nil {
		t.Errorf("the second half alone: %v", got)
	}
	for _, w := range []*Walk{walkOf("b", false, true), walkOf("c", true, false)} {
		got := j.Add(w, now)
		if len(got) != 1 || len(got[0]) != 2 || got[0][0].Followed || !got[0][1].Followed {
			t.Errorf("both halves of %s: %v", w.ID, got)
		}
	}
	j.Add(walkOf("dd", true, false), now)
	j.Add(walkOf("e", true, false), now)
	if got := j.Expire(now.Add(time.Second/2), false); got != nil {
		t.Errorf("too early: %v", got)
	}
	got := j.Expire(now.Add(time.Second), false)
	if ids := []string{got[0][0].ID, got[1][0].ID}; !slices.Equal(ids, []string{"e", "dd"}) {
		t.Errorf("expired %v", ids)
	}
	alone := Joiner{Alone: true}
	if got := alone.Add(walkOf("f", true, false), now); len(got) != 1 {
		t.Error("a Node alone waits for others")
	}
}
