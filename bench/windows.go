package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The cost of a packet in the pipeline alone is the difference of two costs. So
// that what else happens on the machine is not in it, both are measured in many
// short windows in turn, a window in which somebody else had the processor is
// thrown away, and the median of those that are left is taken.

// cost is what a packet of a course cost in one window.
type cost struct {
	packets, nanoseconds, allocations, entries float64
	tables                                     *[]tableCost // nil where nobody asks
	// disturbed is the part of the window in which the thread that is measured
	// wanted to run and did not, or the machine itself did not run.
	disturbed float64
}

// contender is a datapath with a pipeline.
type contender interface {
	// prime makes the connections of courses known, and no others.
	prime(context.Context, []*course) error
	// window sends packets of a course for so long; those of base take one entry
	// that outputs them.
	// When too few of them came through to tell anything the error is errLost.
	window(ctx context.Context, c *course, base bool, long time.Duration) (cost, error)
	// add installs entries, one to a line, in one bundle or each on its own, and
	// returns the time that took.
	add(ctx context.Context, lines []string, bundle bool) (installed, error)
	// remove removes what add has installed.
	remove(context.Context) error
}

// errLost is a window whose packets were lost: the contender, or what makes its
// packets, did not run.
var errLost = errors.New("hardly any packets came through")

const (
	windowsOfRound  = 4    // of each course
	windowsOfSweep  = 2    // of each course and size
	windowsOfTables = 2    // … of those by table
	madeUp          = 2    // times as many, with those thrown away
	madeUpInNeed    = 10   // … where a course has none yet that can be used
	mostDisturbed   = 0.02 // of a window
	mostTolerable   = 0.1  // of a window that is used because there are no others
)

// gathered is what the windows of a course in one round came to.
type gathered struct {
	kept             []cost
	thrown, tolerant int // windows thrown away, and kept although disturbed
}

// sift keeps the windows that nobody disturbed; of a course that has less than
// half of those it should have, the least disturbed ones, if they can be tolerated.
func sift(all []cost, want int) (g gathered) {
	slices.SortFunc(all, func(a, b cost) int { return int((a.disturbed - b.disturbed) * 1e6) })
	n := 0
	for n < len(all) && all[n].disturbed <= mostDisturbed {
		n++
	}
	keep := n
	for keep < min(len(all), max(1, want/2)) && usable(all[keep]) {
		keep++
	}
	return gathered{all[:keep], len(all) - keep, keep - min(n, keep)}
}

// median is that of one part of the costs; NaN when no window was kept.
func (g *gathered) median(of func(cost) float64) float64 {
	if len(g.kept) == 0 {
		return math.NaN()
	}
	var s series
	for _, c := range g.kept {
		s = append(s, of(c))
	}
	return s.median()
}

func nanoseconds(c cost) float64 { return c.nanoseconds }
func allocations(c cost) float64 { return c.allocations }
func entries(c cost) float64     { return c.entries }

// windowsUnit is that of figures which tell how the measurement went, not what
// it found.
const windowsUnit = "windows"

// measured is a round of a contender: of each course its own windows, and those
// of the single entry that came before each of them.
type measured struct {
	courses  []*course
	of, base []gathered
}

// alone is what a packet costs the pipeline without what moves it; NaN when the
// round cannot tell, since the one was disturbed more than the other costs.
func (m *measured) alone(i int) float64 {
	cost := m.of[i].median(nanoseconds) - m.base[i].median(nanoseconds)
	if cost <= 0 {
		return math.NaN()
	}
	return cost
}

// readings are what all contenders have: each course's cost in the pipeline
// alone, and how many windows there were that somebody disturbed.
func (m *measured) readings() (list []reading) {
	thrown, tolerant := 0, 0
	for i, c := range m.courses {
		list = append(list, reading{c.name, "ns", m.alone(i)})
		thrown += m.of[i].thrown + m.base[i].thrown
		tolerant += m.of[i].tolerant + m.base[i].tolerant
	}
	return append(list,
		reading{"windows thrown away", windowsUnit, float64(thrown)},
		reading{"disturbed windows that were needed", windowsUnit, float64(tolerant)})
}

// plan is how windows are to be: so many of each course, as long as that. After
// until, those thrown away are not made up for.
type plan struct {
	want  int
	long  time.Duration
	until time.Time
}

// another says whether a course that has had so many windows gets one more, which
// it is in need of.
func (p *plan) another(had int) bool {
	return had < p.want || had < madeUp*p.want && time.Now().Before(p.until)
}

// measure is a round: the known courses in turn, then the new ones, each with
// windows of the single entry between them.
func measure(ctx context.Context, s contender, courses []*course, p plan) (*measured, error) {
	var known []*course
	for _, c := range courses {
		if c.of > 0 {
			known = append(known, c)
		}
	}
	if err := s.prime(ctx, known); err != nil {
		return nil, err
	}
	w := &windows{of: s, courses: courses, plan: p, costs: make([][]cost, len(courses)), base: make([][]cost, len(courses))}
	for _, fresh := range []bool{false, true} {
		for i := 0; p.another(i) || i < madeUpInNeed*p.want && w.inNeed(fresh); i++ {
			if err := w.turn(ctx, fresh); err != nil {
				return nil, err
			}
		}
	}
	m := &measured{courses: courses}
	for i := range courses {
		m.of, m.base = append(m.of, sift(w.costs[i], p.want)), append(m.base, sift(w.base[i], p.want))
	}
	return m, nil
}

// windows are those of a round.
type windows struct {
	plan
	of          contender
	courses     []*course
	costs, base [][]cost // by course
}

// inNeed says whether a course, of the new ones or the known ones, has no window yet that
// can be used, or none of the single entry.
func (w *windows) inNeed(fresh bool) bool {
	for i, c := range w.courses {
		if (c.of == 0) == fresh && (!slices.ContainsFunc(w.costs[i], usable) || !slices.ContainsFunc(w.base[i], usable)) {
			return true
		}
	}
	return false
}

// usable says whether a window tells something, if there is no better one.
func usable(c cost) bool { return c.disturbed <= mostTolerable }

// turn is one window of each course that is still short of good ones, the new
// ones or the known ones, and one of the single entry before each.
func (w *windows) turn(ctx context.Context, fresh bool) error {
	for i, c := range w.courses {
		if (c.of == 0) != fresh || min(undisturbed(w.costs[i]), undisturbed(w.base[i])) >= w.want {
			continue
		}
		b, err := w.window(ctx, c, true)
		if err != nil {
			return fmt.Errorf("a single entry: %w", err)
		}
		k, err := w.window(ctx, c, false)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		w.base[i], w.costs[i] = append(w.base[i], b), append(w.costs[i], k)
	}
	return nil
}

// window is one window; one whose packets were lost is disturbed from end to end.
func (w *windows) window(ctx context.Context, c *course, base bool) (cost, error) {
	k, err := w.of.window(ctx, c, base, w.long)
	if errors.Is(err, errLost) {
		k, err = cost{disturbed: 1}, nil
	}
	return k, errors.Join(err, ctx.Err())
}

func undisturbed(all []cost) (n int) {
	for _, c := range all {
		if c.disturbed <= mostDisturbed {
			n++
		}
	}
	return n
}

// watch tells how a thread was disturbed since it began.
type watch struct {
	path   string // of the thread's schedstat
	began  time.Time
	waited time.Duration
	stolen float64
}

// watchThread watches a thread of a process from now on.
func watchThread(process string, thread int) (*watch, error) {
	w := &watch{path: fmt.Sprintf("/proc/%s/task/%d/schedstat", process, thread), began: time.Now(), stolen: readTimes().steal}
	t, err := readThreadTime(w.path)
	w.waited = t.waited
	return w, err
}

// part is the part of the time until now in which the thread waited for a
// processor, or the machine for its host.
func (w *watch) part() (float64, error) {
	t, err := readThreadTime(w.path)
	long := time.Since(w.began).Seconds()
	stolen := (readTimes().steal - w.stolen) / ticksPerSecond
	return max((t.waited-w.waited).Seconds(), stolen) / long, err
}

// threadNamed finds a thread of a process by how its name begins.
func threadNamed(process, prefix string) (int, error) {
	names, err := filepath.Glob("/proc/" + process + "/task/*/comm")
	if err != nil {
		return 0, err
	}
	for _, path := range names {
		name, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(name), prefix) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("process %s has no thread %s…", process, prefix)
}

// ticksPerSecond is the unit of /proc/stat, which the kernel fixes for programs.
const ticksPerSecond = 100

// times are what the processors together did since the machine began, in ticks.
type times struct{ busy, idle, steal float64 }

// readTimes reads the first line of /proc/stat; zeros when there is none.
func readTimes() (t times) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(f, 64)
		switch i {
		case 0: // "cpu"
		case 4, 5: // idle, iowait
			t.idle += n
		case 8:
			t.steal = n
		case 9, 10: // guests, which are in user already
		default:
			t.busy += n
		}
	}
	return t
}

// foreignLoad is the part of the processors that others have while this process
// rests.
func foreignLoad() float64 {
	before := readTimes()
	time.Sleep(restTime)
	after := readTimes()
	busy := after.busy + after.steal - before.busy - before.steal
	return busy / max(busy+after.idle-before.idle, 1)
}

// restTime is how long foreign load is watched.
const restTime = 500 * time.Millisecond

// busyMachine is the foreign load from which figures are doubtful.
const busyMachine = 0.1
