package trace

import (
	"regexp"
	"strings"
	"testing"
)

// declared is a node of a chart where it first appears: its id behind spaces or
// an arrow, and a quoted label without a quote in it.
var declared = regexp.MustCompile(`^    (?:(p\d+n\d+) (?:-->|-\.->) )?(p\d+n\d+)(?:\["[^"]*"\]|\(\["[^"]*"\]\))(?:::(?::port|:drop))?$`)

// TestMermaid: links lead to nodes that appeared before, and every block is
// closed.
func TestMermaid(t *testing.T) {
	ways := recorded(t)
	got := printed(t, FormMermaid, ways)
	seen, depth, boxes, drops := map[string]bool{}, 0, 0, 0
	for _, line := range strings.Split(strings.TrimPrefix(got, mermaidHead), "\n") {
		switch m := declared.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "  subgraph "):
			depth++
			boxes++
		case line == "  end":
			depth--
		case m != nil:
			if seen[m[2]] || m[1] != "" && !seen[m[1]] {
				t.Errorf("%q is named twice, or linked from nothing", line)
			}
			seen[m[2]] = true
			if strings.HasSuffix(line, ":::drop") {
				drops++
			}
		case line != "":
			t.Errorf("a line that is no node: %q", line)
		}
		if depth < 0 || depth > 1 {
			t.Fatalf("boxes are not closed at %q", line)
		}
	}
	if boxes != len(ways) || drops != 1 {
		t.Errorf("%d boxes of %d packets, %d dropped", boxes, len(ways), drops)
	}
	for _, want := range []string{"nw_ttl 64 → 63", "ct new|trk", "dropped in table SpoofGuard"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestMermaidEscapes: names are nothing but text.
func TestMermaidEscapes(t *testing.T) {
	w := &Walk{ID: "1", InPort: Port{No: 3, Name: `a"]; click p0n0 "javascript:x` + "\n" + `<img>#`}, Verdict: Verdict{Text: "gone"}}
	got := printed(t, FormMermaid, []Joined{{w}})
	if want := `    p0n0(["a#quot;]; click p0n0 #quot;javascript:x<br/>#lt;img#gt;#35; (3)"]):::port`; !strings.Contains(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := printed(t, FormMermaid, nil); got != mermaidHead {
		t.Errorf("a chart of nothing is\n%s", got)
	}
}

// TestMermaidJoined links the Nodes of one way, and several outputs to their table.
func TestMermaidJoined(t *testing.T) {
	a, b := walkOf("x", true, false), walkOf("x", false, true)
	a.Steps[0].Table, b.Steps = "Output", []Step{{Kind: StepEntry, Table: "Classifier"}, {Kind: StepOutput, Port: &Port{No: 4}}, {Kind: StepOutput, Port: &Port{No: 5}}}
	got := printed(t, FormMermaid, []Joined{{a, b}})
	for _, want := range []string{"p0n2 -.-> p0n3([", "p0n4 --> p0n5([\"port 4", "p0n4 --> p0n6([\"port 5"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
