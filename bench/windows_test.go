package bench

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// scripted is a contender whose windows are known beforehand.
type scripted struct {
	base, of []cost // windows, the last one for ever
	turns    []string
	primed   int
}

func (s *scripted) prime(_ context.Context, known []*course) error {
	s.primed = len(known)
	return nil
}

func (s *scripted) add(context.Context, []string, bool) (installed, error) {
	return installed{}, nil
}

func (s *scripted) remove(context.Context) error { return nil }

func (s *scripted) window(_ context.Context, c *course, base bool, _ time.Duration) (cost, error) {
	from := &s.of
	s.turns = append(s.turns, c.name)
	if base {
		from = &s.base
		s.turns[len(s.turns)-1] = "base"
	}
	k := (*from)[0]
	if len(*from) > 1 {
		*from = (*from)[1:]
	}
	if k == lost {
		return cost{}, errLost
	}
	return k, nil
}

// lost is a window whose packets were lost.
var lost = cost{nanoseconds: -1}

// TestWindows has quiet and disturbed windows: only the quiet ones count.
func TestWindows(t *testing.T) {
	quiet, noisy := cost{nanoseconds: 300, entries: 16}, cost{nanoseconds: 9000, disturbed: 0.5}
	s := &scripted{base: []cost{{nanoseconds: 100}}, of: []cost{noisy, quiet, lost, quiet}}
	m, err := measure(t.Context(), s, []*course{{name: "known", of: 1}}, plan{windowsOfRound, time.Millisecond, time.Now().Add(time.Hour)})
	if err != nil || s.primed != 1 {
		t.Fatalf("%v, %d courses made known", err, s.primed)
	}
	if got := m.alone(0); got != 200 {
		t.Errorf("%v ns, want 200", got)
	}
	want := []reading{{"known", "ns", 200}, {"windows thrown away", "windows", 2}, {"disturbed windows that were needed", "windows", 0}}
	if got := m.readings(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := strings.Join(s.turns[:4], " "); got != "base known base known" {
		t.Errorf("the windows came as %s", got)
	}
}

// TestWindowsThatCannotTell: with nothing but disturbed windows, or when the
// single entry costs more, there is no figure, and no ratio of one.
func TestWindowsThatCannotTell(t *testing.T) {
	for name, s := range map[string]*scripted{
		"disturbed":       {base: []cost{{nanoseconds: 100}}, of: []cost{{nanoseconds: 300, disturbed: 0.5}}},
		"dearer for one":  {base: []cost{{nanoseconds: 400}}, of: []cost{{nanoseconds: 300}}},
		"single is noisy": {base: []cost{{nanoseconds: 100, disturbed: 0.9}}, of: []cost{{nanoseconds: 300}}},
	} {
		m, err := measure(t.Context(), s, []*course{{name: "fresh"}}, plan{windowsOfRound, time.Millisecond, time.Now().Add(time.Hour)})
		if err != nil || !math.IsNaN(m.alone(0)) {
			t.Errorf("%s: %v, %v", name, m.alone(0), err)
		}
	}
	b := board{sides: []string{"a", "b"}}
	for _, round := range [][2]float64{{100, 50}, {math.NaN(), 70}, {100, 60}, {0, 90}} {
		b.note([]finding{{"a", 0, []reading{{"x", "ns", round[0]}}}, {"b", 0, []reading{{"x", "ns", round[1]}}}})
	}
	first, second := b.lines()[0].Reached[0], b.lines()[0].Reached[1]
	if first.Rounds != 3 || second.Rounds != 4 || second.Ratio != 0.55 {
		t.Errorf("%+v, %+v: want 3 and 4 rounds and the ratio 0.55", first, second)
	}
}

// TestWindowsAreNotMadeUpForWhenTimeIsUp: lost windows are taken again only while
// there is time, but for those of a course that has none to use yet.
func TestWindowsAreNotMadeUpForWhenTimeIsUp(t *testing.T) {
	quiet := cost{nanoseconds: 300}
	for name, c := range map[string]struct {
		of    []cost
		until time.Time
		want  int // windows of the course
		cost  float64
	}{
		"one is there, no time": {[]cost{quiet, lost, lost, lost}, time.Time{}, windowsOfRound, 200},
		"one is there, time":    {[]cost{quiet, lost, lost, lost}, time.Now().Add(time.Hour), madeUp * windowsOfRound, 200},
		"the ninth, no time":    {[]cost{lost, lost, lost, lost, lost, lost, lost, lost, quiet}, time.Time{}, 9, 200},
		"none, no time":         {[]cost{lost}, time.Time{}, madeUpInNeed * windowsOfRound, math.NaN()},
		"none, time":            {[]cost{lost}, time.Now().Add(time.Hour), madeUpInNeed * windowsOfRound, math.NaN()},
	} {
		s := &scripted{base: []cost{{nanoseconds: 100}}, of: c.of}
		m, err := measure(t.Context(), s, []*course{{name: "known", of: 1}}, plan{windowsOfRound, time.Millisecond, c.until})
		if err != nil || len(s.turns) != 2*c.want {
			t.Errorf("%s: %v, %d windows, want %d", name, err, len(s.turns)/2, c.want)
		}
		if got := m.alone(0); got != c.cost && !(math.IsNaN(got) && math.IsNaN(c.cost)) {
			t.Errorf("%s: %v ns, want %v", name, got, c.cost)
		}
	}
}

// TestInstallation installs entries into antrail's switch, finds them there, and
// has them gone afterwards.
func TestInstallation(t *testing.T) {
	p, err := exampleProgram("two-nodes/node-a")
	if err != nil {
		t.Fatal(err)
	}
	n, err := newInstallation(p.Names)
	if err != nil || len(n.bundle) != bundleSize || len(n.single) != singleSize {
		t.Fatalf("%d and %d lines, %v", len(n.bundle), len(n.single), err)
	}
	n.single = n.single[:3]
	w, err := newWalk(p, switchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	before := len(w.program.sw.Flows())
	if _, err := w.add(t.Context(), n.bundle, true); err != nil {
		t.Fatal(err)
	}
	if got := len(w.program.sw.Flows()) - before; got != bundleSize {
		t.Errorf("%d entries were installed, want %d", got, bundleSize)
	}
	list, err := n.measure(t.Context(), w) // the bundle's once more
	if err != nil || len(list) != 4 {
		t.Errorf("%v, %v", list, err)
	}
	for _, r := range list {
		if !(r.value > 0) {
			t.Errorf("%s is %v", r.name, r.value)
		}
	}
	if got := len(w.program.sw.Flows()); got != before {
		t.Errorf("%d entries are left, want %d", got, before)
	}
}

// TestTolerated: windows disturbed a little are used when there are no others.
func TestTolerated(t *testing.T) {
	g := sift([]cost{{nanoseconds: 5, disturbed: 0.4}, {nanoseconds: 4, disturbed: 0.09}, {nanoseconds: 3, disturbed: 0.05}, {nanoseconds: 2, disturbed: 0.06}}, windowsOfRound)
	if len(g.kept) != 2 || g.kept[0].nanoseconds != 3 || g.kept[1].nanoseconds != 2 || g.thrown != 2 || g.tolerant != 2 {
		t.Errorf("%+v", g)
	}
}

func TestDecades(t *testing.T) {
	for largest, want := range map[int][]int{10: {10}, 99: {10}, 100: {10, 100}, 100_000: {10, 100, 1000, 10_000, 100_000}} {
		if got := decadesTo(largest); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", largest, got, want)
		}
	}
}

// TestServiceProgram measures packets to ClusterIPs, all of which arrive or the
// walker fails.
func TestServiceProgram(t *testing.T) {
	p, err := serviceProgram(10)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWalk(p, switchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.program.counts = true
	many := manyCourse() // freshCourse has connections of the same numbers
	many.of = 1000
	courses := []*course{knownCourse(), knownServiceCourse(), many, freshCourse(), freshServiceCourse(), freshAffinityCourse(), knownHairpinCourse(), freshHairpinCourse()}
	m, err := measure(t.Context(), w, courses, plan{windowsOfRound, time.Millisecond, time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.of) != len(courses) || len(m.readings()) != len(courses)+2 {
		t.Errorf("%d courses, %v", len(m.of), m.readings())
	}
	for i, c := range courses {
		for _, k := range m.of[i].kept {
			if first := m.of[i].kept[0].entries; first < 1 || math.Abs(k.entries-first) > 1 {
				t.Errorf("%s: %v entries a packet in one window, %v in another", c.name, first, k.entries)
			}
		}
	}
}

// TestTables: each table that a packet is in has a time, those of all tables come
// to the whole, and tables that no packet meets are told, and that a course has no figure.
func TestTables(t *testing.T) {
	p, err := serviceProgram(1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newByTable(p)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	courses := []*course{knownCourse(), freshServiceCourse()}
	for _, name := range []string{courses[0].short(), courses[1].short(), "never undisturbed"} {
		b.board.side(name)
	}
	quiet := func(l Line) bool { return l.Name == allTables && l.Reached[0] != nil && l.Reached[1] != nil }
	for range 100 { // until there was a moment with the processor to itself
		if err := b.round(t.Context(), courses, plan{windowsOfTables, 10 * time.Millisecond, time.Now()}); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(b.board.lines(), quiet) {
			break
		}
	}
	c := b.comparison("a machine")
	reached := func(name string) []*Spread {
		i := slices.IndexFunc(c.Lines, func(l Line) bool { return l.Name == name })
		if i < 0 {
			t.Fatalf("no line %s: %+v", name, c.Lines)
		}
		return c.Lines[i].Reached
	}
	if s := reached("ServiceLB"); s[0] != nil || s[1] == nil {
		t.Errorf("a known connection is in ServiceLB, or a first packet is not: %v", s)
	}
	if s := reached("ConntrackZone"); s[0] == nil || s[1] == nil || s[1].Ratio != 0 {
		t.Errorf("ConntrackZone: %v", s)
	}
	sum := reached(allLookups)[1].Median + reached(allActions)[1].Median
	if got := reached(allTables)[1]; got.Rounds == 1 && math.Abs(got.Median-sum) > 1 {
		t.Errorf("all tables take %v, lookups and actions %v", got.Median, sum)
	}
	if note := strings.Join(c.Notes, " "); !strings.Contains(note, "in 31 tables") || !strings.Contains(note, "ARPResponder (ARP only)") || !strings.Contains(note, missingNote) {
		t.Errorf("the notes are %s", note)
	}
}
