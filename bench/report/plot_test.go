package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPlot compares a plot of bars and a curve with the one kept.
func TestPlot(t *testing.T) {
	c := &Comparison{Title: "Things <&>", Machine: "a machine", Warning: "The machine was busy.", Sides: []string{"one", "other"}, Lines: []Line{
		{Name: "size", Unit: "bytes", Reached: []*Spread{Series{208}.Spread(), Series{336, 342, 339}.Spread()}},
		{Name: "nothing", Unit: "bytes", Reached: []*Spread{nil, Series{0}.Spread()}},
		{Name: "walk", Unit: "ns", X: 10, Reached: []*Spread{Series{300}.Spread(), Series{500}.Spread()}},
		{Name: "walk", Unit: "ns", X: 1000, Reached: []*Spread{Series{310}.Spread(), nil}},
	}}
	var got bytes.Buffer
	if err := c.Plot(&got); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/plot.svg"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%v; the plot is\n%s\nUPDATE=1 keeps it", err, got.String())
	}
}

// TestPlotsOfOneSideAndGrids checks that figures of one unit stand together, and that a grid leaves out
// its sums.
func TestPlotsOfOneSideAndGrids(t *testing.T) {
	one := func(values ...float64) []*Spread { return []*Spread{Series(values).Spread()} }
	draw := func(c *Comparison) string {
		var b strings.Builder
		if err := c.Plot(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := draw(&Comparison{Sides: []string{"antrail"}, Lines: []Line{
		{Name: "longest turn", Unit: "µs", Reached: one(300, 400)}, {Name: "a packet", Unit: "ns", Reached: one(600)},
		{Name: "a collection", Unit: "µs", Reached: one(2000)}, {Name: "allocations", Unit: "allocs", Reached: one(0)}, {Name: "lost", Unit: SamplesUnit, Reached: one(3)},
	}})
	if strings.Contains(got, "<circle") {
		t.Errorf("figures of one size are no bars:\n%s", got)
	}
	for want, n := range map[string]int{">µs (less is better)<": 1, ">ns (less is better)<": 1, "longest turn": 1, "a collection": 1, "allocs": 0, "lost": 0} {
		if strings.Count(got, want) != n {
			t.Errorf("%q is there %d times, want %d:\n%s", want, strings.Count(got, want), n, got)
		}
	}
	got = draw(&Comparison{Sides: []string{"antrail"}, Lines: []Line{
		{Name: "wait", Unit: "µs", Reached: one(0, 0, 9)}, {Name: "turn", Unit: "µs", Reached: one(20)}, {Name: "collection", Unit: "µs", Reached: one(2000)},
	}})
	if strings.Count(got, "<circle") != 2 || strings.Count(got, "stroke-width") < 3 || !strings.Contains(got, ">1k<") {
		t.Errorf("figures far apart are not on a logarithmic axis, or one without a median has a point:\n%s", got)
	}
	got = draw(&Comparison{Grid: true, Sides: []string{"known", "new"}, Lines: []Line{
		{Name: "Output", Unit: "ns", Reached: []*Spread{nil, Series{100, 140, 120}.Spread()}},
		{Name: "all", Unit: "ns", Sum: true, Reached: []*Spread{Series{900}.Spread(), Series{1900}.Spread()}},
	}})
	if strings.Count(got, ">Output<") != 1 || !strings.Contains(got, ">120<") || strings.Contains(got, "900") || !strings.Contains(got, ">new, ns (less is better)<") {
		t.Errorf("the grid is\n%s", got)
	}
}

// TestBetter checks in which direction better lies.
func TestBetter(t *testing.T) {
	for _, c := range [][3]string{
		{"one stream", "Gbit/s", " (more is better)"}, {"a packet", "ns", " (less is better)"}, {"runs of a thread", "1/s", " (less is better)"},
		{"collections, 10000 rules", "1/s", " (neither is better)"}, {"packets watched", "packets", " (neither is better)"},
	} {
		if got := better(c[0], c[1]); got != c[2] {
			t.Errorf("%s in %s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
	connections, runs := Line{Name: "connections", Unit: "1/s"}, Line{Name: "runs of a thread", Unit: "1/s"}
	if got := betterOfAll([]Line{connections, runs}) + betterOfAll([]Line{runs, runs}); got != " (less is better)" {
		t.Errorf("lines of one unit: %q", got)
	}
}

// figureName matches the name of a figure or of a group of figures in a plot: a text
// without a class, or with the empty one.
var figureName = regexp.MustCompile(`<text [^>]*class="" [^>]*>([^<]*)<`)

// TestPlotsOfTheDocsSayWhatIsBetter reads the plots of the pages: each figure says in which
// direction better lies.
func TestPlotsOfTheDocsSayWhatIsBetter(t *testing.T) {
	plots, err := filepath.Glob("../../docs/plots/*.svg")
	if err != nil || len(plots) < 10 {
		t.Fatalf("%d plots, %v", len(plots), err)
	}
	for _, path := range plots {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		names := figureName.FindAllSubmatch(text, -1)
		if len(names) == 0 {
			t.Errorf("%s has no figure", path)
		}
		for _, m := range names {
			if !bytes.HasSuffix(m[1], []byte(" is better)")) {
				t.Errorf("%s: %q does not say in which direction better lies", path, m[1])
			}
		}
	}
}

// TestTrendNamesRuns: the first and the last run have their labels, and between them only
// labels that overlap no other.
func TestTrendNamesRuns(t *testing.T) {
	one := func() []*Spread { return []*Spread{Series{1}.Spread()} }
	var labels []string
	var runs [][]*Comparison
	for i := range 40 {
		labels = append(labels, fmt.Sprintf("v0.0.0-202611271657%02d-6280ef2bf056", i))
		runs = append(runs, []*Comparison{{Profile: "rr", Sides: []string{"antrail"}, Lines: []Line{{Name: "round trip", Unit: "µs", Reached: one()}}}})
	}
	var svg strings.Builder
	if err := Trends(labels, runs)[0].Plot(&svg); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`text-anchor="start">v0.0.0-20261127165700-6…<`, `text-anchor="end">v0.0.0-20261127165739-6…<`, "round trip, µs (less is better)<", `text-anchor="end">0<`} {
		if strings.Count(svg.String(), want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, svg.String())
		}
	}
	if n := strings.Count(svg.String(), "…<"); n != 2 {
		t.Errorf("%d labels; there is room for two of this length", n)
	}
}
