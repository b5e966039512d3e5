package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/internal/antrailtest"
	"github.com/antrail/antrail/internal/reaptest"
	"github.com/cilium/ebpf/asm"
)

// TestProfiles runs every profile for a moment: all contenders that the machine
// has reach something, or it is told that others had the processors.
func TestProfiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	dir := reaptest.LabDir(t)
	t.Setenv("TMPDIR", dir) // the contenders'
	antrail, err := antrailtest.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Profiles: []string{"all"}, Rounds: 1, Time: time.Second, Window: 20 * time.Millisecond, Largest: 10, Binary: antrail, StateDir: dir}
	result, err := Run(t.Context(), o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Comparisons) != len(ComparisonNames()) {
		t.Fatalf("%d comparisons, want %v", len(result.Comparisons), ComparisonNames())
	}
	for _, c := range result.Comparisons {
		if len(c.Sides) == 0 || len(c.Lines) == 0 {
			t.Errorf("%s has %d sides and %d lines", c.Profile, len(c.Sides), len(c.Lines))
		}
		reached := make([]bool, len(c.Sides))
		for _, l := range c.Lines {
			for i, s := range l.Reached {
				// A difference may be below 0 on a busy machine, and who rests may need no time at all.
				reached[i] = reached[i] || s != nil && (s.Median != 0 || c.Profile == "idle")
			}
		}
		if i := slices.Index(reached, false); i >= 0 && !slices.Contains(c.Notes, missingNote) {
			t.Errorf("%s: %s reached nothing: %+v", c.Profile, c.Sides[i], c.Lines)
		}
	}
	saved := filepath.Join(t.TempDir(), "new")
	if err := result.Save(saved); err != nil {
		t.Fatal(err)
	}
	again, err := Load(saved)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Compare(&out, again, result); err != nil || !strings.Contains(out.String(), "~") {
		t.Errorf("a run compared with itself: %v\n%s", err, out.String())
	}
}

// TestNothingToSave: a run that found nothing leaves what an earlier one saved.
func TestNothingToSave(t *testing.T) {
	dir := t.TempDir()
	if err := new(Result).Save(dir); err == nil || !strings.Contains(err.Error(), "nothing is saved") {
		t.Errorf("%v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v: %v", err, files)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Run(ctx, Options{Profiles: []string{"forward"}}, io.Discard)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
}

// TestNextDecade: what a switch needs to start is not taken for what ten times the
// entries need.
func TestNextDecade(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		took []time.Duration
		want time.Duration
	}{
		{[]time.Duration{3 * s}, 3 * s},
		{[]time.Duration{3 * s, 2 * s}, 2 * s},
		{[]time.Duration{3 * s, 2 * s, 5 * s}, 35 * s},
	} {
		if got := nextDecade(c.took); got != c.want {
			t.Errorf("after %v: %v, want %v", c.took, got, c.want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Rounds: -1}, {Time: -1}, {Window: 1}, {Largest: 9}, {Largest: 1e7}, {Profiles: []string{"stream", "quic"}}} {
		if _, err := Run(t.Context(), o, io.Discard); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if err := (Options{}).Check(); err != nil {
		t.Error(err)
	}
}

// TestContest has two sides take turns, of which each begins a round, and checks ratios and lines.
func TestContest(t *testing.T) {
	var turns []string
	fake := func(name string, values ...float64) *side {
		return &side{name: name, measure: func(context.Context) ([]reading, error) {
			v := values[0]
			values = values[1:]
			turns = append(turns, name)
			return []reading{{"speed", "m/s", v}}, nil
		}}
	}
	r := &rig{Options: Options{Rounds: 3}, progress: io.Discard, until: time.Now()}
	var c Comparison
	if err := r.contestAt(t.Context(), &c, []point{{7, []*side{fake("a", 1, 2, 4), fake("b", 2, 2, 2)}}}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, ""); got != "abbaab" {
		t.Errorf("turns %s", got)
	}
	l := c.Lines[0]
	if a, b := l.Reached[0], l.Reached[1]; l.X != 7 || a.Median != 2 || a.Ratio != 0 || b.Ratio != 1 || !slices.Equal(a.Values, []float64{1, 2, 4}) {
		t.Errorf("line %+v: %+v, %+v", l, a, b)
	}
	failing := &side{name: "bad", measure: func(context.Context) ([]reading, error) { return nil, errors.New("torn") }}
	if err := r.contest(t.Context(), &c, []*side{failing}); err == nil || !strings.Contains(err.Error(), "bad: torn") {
		t.Errorf("%v", err)
	}
}

// TestTimeIsDivided: by weight, with what those before left over or overdrew.
func TestTimeIsDivided(t *testing.T) {
	now := time.Now()
	end := now.Add(60 * time.Second)
	three := []profile{{weight: 3}, {weight: 2}, {weight: 1}}
	for left, want := range map[int]time.Duration{0: 30 * time.Second, 1: 40 * time.Second, 2: 60 * time.Second} {
		if got := share(now, end, three[left:]).Sub(now); got != want {
			t.Errorf("with %d gone: %v, want %v", left, got, want)
		}
	}
	for _, p := range profiles() {
		if p.weight < 1 {
			t.Errorf("%s has no weight", p.name)
		}
	}
	r := &rig{until: now.Add(time.Hour)}
	for _, c := range []struct {
		rounds, asked int
		longest       time.Duration
		want          bool
	}{{1, 0, time.Minute, true}, {1, 0, 2 * time.Hour, false}, {1, 2, 2 * time.Hour, true}, {mostRounds, 0, 0, false}, {mostRounds, mostRounds + 1, 0, true}} {
		r.Rounds = c.asked
		if got := r.another(c.rounds, c.longest); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestContestKeepsRounds: what whole rounds found stays when a later one fails,
// and each round tells how much a figure grew.
func TestContestKeepsRounds(t *testing.T) {
	of := func(values ...float64) *side {
		return &side{name: "a", measure: func(context.Context) ([]reading, error) {
			if len(values) == 0 {
				return nil, errors.New("torn")
			}
			v := values[0]
			values = values[1:]
			return []reading{{"cost", "ns", v}, {"thrown", windowsUnit, 1}}, nil
		}}
	}
	var said strings.Builder
	r := &rig{Options: Options{Rounds: 3}, progress: &said}
	var c Comparison
	err := r.contestAt(t.Context(), &c, []point{{10, []*side{of(10, 20)}}, {100, []*side{of(11, 30)}}})
	if err == nil || !strings.Contains(err.Error(), "round 3: a at 10: torn") {
		t.Errorf("%v", err)
	}
	if len(c.Lines) != 5 || !slices.Equal(c.Lines[2].Reached[0].Values, []float64{11, 30}) {
		t.Fatalf("%+v", c.Lines)
	}
	if l := c.Lines[4]; l.Name != "cost, over that at 10" || l.X != 100 || !slices.Equal(l.Reached[0].Values, []float64{1.1, 1.5}) {
		t.Errorf("%+v: %v", l, l.Reached[0])
	}
	b := board{}
	b.side("a")
	b.note([]finding{{"a", 0, []reading{{"x", "ns", math.NaN()}}}})
	if !unknown(b.lines()[0]) || slices.ContainsFunc(c.Lines, unknown) {
		t.Errorf("known and unknown: %+v, %+v", b.lines()[0], c.Lines)
	}
	if !slices.Contains(c.Notes, "Rounds: 2.") || !strings.Contains(said.String(), "a at 100\n") {
		t.Errorf("%q, %s", c.Notes, said.String())
	}
}

// TestContenders leaves out those that are not asked for.
func TestContenders(t *testing.T) {
	var turns []string
	var sides []*side
	for _, name := range []string{"Linux bridge", "antrail offload", "antrail afxdp"} {
		sides = append(sides, &side{name: name, measure: func(context.Context) ([]reading, error) {
			turns = append(turns, name)
			return []reading{{"speed", "m/s", 1}}, nil
		}})
	}
	r := &rig{Options: Options{Rounds: 1, Contenders: []string{"OFFLOAD", "bridge"}}, progress: io.Discard, until: time.Now()}
	var c Comparison
	if err := r.contest(t.Context(), &c, sides); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Linux bridge", "antrail offload"}; !slices.Equal(turns, want) || !slices.Equal(c.Sides, want) {
		t.Errorf("%q were measured, %q are told, want %q", turns, c.Sides, want)
	}
	opened := false
	pairs, absent, err := r.open([]opener{
		{"direct veth", func() (*podPair, error) { t.Error("was opened"); return nil, errors.New("no") }},
		{"Linux bridge", func() (*podPair, error) { opened = true; return &podPair{name: "Linux bridge"}, nil }},
		{"offload", func() (*podPair, error) { return nil, missingError{"offload", errors.New("no kernel")} }},
	})
	if err != nil || !opened || len(pairs) != 1 || len(absent) != 1 {
		t.Errorf("%d pairs, absent %q: %v", len(pairs), absent, err)
	}
	r.Contenders = []string{"tortoise"}
	if err := r.contest(t.Context(), &c, sides); err == nil || err.Error() != "no contender is tortoise; there are antrail afxdp, direct veth, Linux bridge, antrail offload" {
		t.Errorf("nobody takes part: %v", err)
	}
}

func TestSeries(t *testing.T) {
	if got := (series{1, 2, 3, 4}).median(); got != 2.5 {
		t.Errorf("median of an even number is %v, want 2.5", got)
	}
	if got := (series{2, 1, 3}).median(); got != 2 {
		t.Errorf("median of an odd number is %v, want 2", got)
	}
	if got := (series{1, 2, 3, 4}).over(series{2, 1, 3, 1}).median(); math.Abs(got-1.5) > 1e-9 { // 0.5, 2, 1, 4
		t.Errorf("median ratio %v, want 1.5", got)
	}
	sorted := []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for part, want := range map[float64]time.Duration{0.5: 6, 0.9: 10, 0.99: 10} {
		if got := percentile(sorted, part); got != want {
			t.Errorf("%v of ten: %v, want %v", part, got, want)
		}
	}
}

// TestHighestRate searches switches whose loss is known.
func TestHighestRate(t *testing.T) {
	for _, limit := range []float64{5_000, 6_000, 123_456, 1e6, 3.9e6} {
		tries := 0
		got, err := highestRate(5_000, 4e6, 1.05, func(rate float64) (bool, error) { tries++; return rate <= limit, nil })
		if err != nil || got > limit || got < limit/1.05 || tries > 10 {
			t.Errorf("limit %v: %v after %d tries, %v", limit, got, tries, err)
		}
	}
	if got, _ := highestRate(5_000, 4e6, 1.05, func(float64) (bool, error) { return true, nil }); got != 4e6 {
		t.Errorf("without loss: %v", got)
	}
	if got, _ := highestRate(5_000, 4e6, 1.05, func(float64) (bool, error) { return false, nil }); got != 0 {
		t.Errorf("with loss at any rate: %v", got)
	}
	if _, err := highestRate(5_000, 4e6, 1.05, func(float64) (bool, error) { return false, io.ErrUnexpectedEOF }); err != io.ErrUnexpectedEOF {
		t.Errorf("%v", err)
	}
}

// TestCompare compares samples whose U is known: of four figures each, all lower
// than the others, 2 of the 70 orders are as far apart, p = 0.029.
func TestCompare(t *testing.T) {
	result := func(values ...float64) *Result {
		line := Line{Name: "speed", Unit: "m/s", Reached: []*Spread{series(values).spread(), nil}}
		return &Result{Comparisons: []*Comparison{{Profile: "walk", Sides: []string{"one", "other"}, Lines: []Line{line}}}}
	}
	for _, c := range []struct {
		b    *Result
		want string
	}{
		{result(20, 22, 24, 26), "+100.00% (p=0.029 n=4)"},
		{result(10, 11, 12, 13), "~ (p=1.000 n=4)"},
	} {
		var out strings.Builder
		if err := Compare(&out, result(10, 11, 12, 13), c.b); err != nil || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v, want %s:\n%s", err, c.want, out.String())
		}
	}
	var out strings.Builder
	other := result(20, 22, 24, 26)
	other.Machine.CPUs = 64
	other.Comparisons[0].Lines = append(other.Comparisons[0].Lines, Line{Name: "thrown", Unit: windowsUnit, Reached: []*Spread{series{1}.spread()}})
	err := Compare(&out, other, other)
	if err != nil || !strings.Contains(out.String(), "0 of 1 figures changed") || strings.Contains(out.String(), "machines differ") {
		t.Errorf("with itself: %v\n%s", err, out.String())
	}
	out.Reset()
	if err := Compare(&out, result(10, 11, 12, 13), other); err != nil || !strings.Contains(out.String(), "1 of 1 figures changed") || !strings.Contains(out.String(), "machines differ") {
		t.Errorf("with another machine's: %v\n%s", err, out.String())
	}
	if err := Compare(io.Discard, result(1), &Result{}); err == nil {
		t.Error("nothing in common, and no error")
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{}", `{"comparisons":[null]}`, `{"comparisons":[{"profile":"p","sides":["a"],"lines":[{"name":"x","reached":[null,null]}]}]}`} {
		path := filepath.Join(dir, "bench.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "none")); err == nil {
		t.Error("no file, and no error")
	}
}

// TestPlot compares a plot of bars and a curve with the one kept.
func TestPlot(t *testing.T) {
	c := &Comparison{Title: "Things <&>", Machine: "a machine", Sides: []string{"one", "other"}, Lines: []Line{
		{Name: "size", Unit: "bytes", Reached: []*Spread{series{208}.spread(), series{336, 342, 339}.spread()}},
		{Name: "nothing", Unit: "bytes", Reached: []*Spread{nil, series{0}.spread()}},
		{Name: "walk", Unit: "ns", X: 10, Reached: []*Spread{series{300}.spread(), series{500}.spread()}},
		{Name: "walk", Unit: "ns", X: 1000, Reached: []*Spread{series{310}.spread(), nil}},
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

// TestPlotsOfOneSideAndGrids draws what has no contenders: figures of one unit together, and
// a grid without its sums.
func TestPlotsOfOneSideAndGrids(t *testing.T) {
	one := func(values ...float64) []*Spread { return []*Spread{series(values).spread()} }
	draw := func(c *Comparison) string {
		var b strings.Builder
		if err := c.Plot(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := draw(&Comparison{Sides: []string{"antrail"}, Lines: []Line{
		{Name: "longest turn", Unit: "µs", Reached: one(300, 400)}, {Name: "a packet", Unit: "ns", Reached: one(600)},
		{Name: "a collection", Unit: "µs", Reached: one(2000)}, {Name: "allocations", Unit: "allocs", Reached: one(0)}, {Name: "lost", Unit: windowsUnit, Reached: one(3)},
	}})
	if strings.Contains(got, "<circle") {
		t.Errorf("figures of one size are no bars:\n%s", got)
	}
	for want, n := range map[string]int{">µs<": 1, ">ns<": 1, "longest turn": 1, "a collection": 1, "allocs": 0, "lost": 0} {
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
		{Name: "Output", Unit: "ns", Reached: []*Spread{nil, series{100, 140, 120}.spread()}},
		{Name: "all", Unit: "ns", Sum: true, Reached: []*Spread{series{900}.spread(), series{1900}.spread()}},
	}})
	if strings.Count(got, ">Output<") != 1 || !strings.Contains(got, ">120<") || strings.Contains(got, "900") || !strings.Contains(got, ">new, ns<") {
		t.Errorf("the grid is\n%s", got)
	}
}

// TestGeneratorRenews compares the ports that the generator's program writes
// with those that Go gives.
func TestGeneratorRenews(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("programs need root")
	}
	for _, n := range []uint32{0, 1, 1<<renewBits - 1, 1 << renewBits, 123_456_789} {
		for _, c := range []renewal{changeNone, changePorts, changeSwapped, changeSource} {
			program := append(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.LoadImm(asm.R8, int64(n), asm.DWord)}, c.instructions()...)
			p, err := loadGenerator(append(program, asm.Mov.Imm(asm.R0, 1).WithSymbol("drop"), asm.Return()))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			want := there(64)
			c.apply(want, n)
			_, got, err := p.Test(there(64))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d of %d: %v, %x, want %x", c, n, err, got, want)
			}
		}
	}
}
