package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Overload: what a contender does when more comes than it can take. Contender and
// generator never sleep and have a processor each, of which others want a part.
// So the figures are taken from short parts of a window, and a part in which one
// of the two threads waited for its processor is thrown away: nothing comes then,
// or nobody takes it, and that says nothing of the contender. Where hardly any are
// left, the figures are those of all parts together.

const (
	overloadParts = 12 // of a window, that are used
	leastParts    = 4  // from fewer there is no median
	mostParts     = 48 // with those thrown away
	shortestPart  = 4 * time.Millisecond
)

// overload sends more than can get through, and returns the frames a second
// that do, and the nanoseconds that the contender's threads run for each, 0 when it
// has none. Before that, queues fill and caches learn for a quarter of the window.
func (t *topology) overload(ctx context.Context, g *generator, l *load) (rate, each float64, err error) {
	part := max(l.window/overloadParts, shortestPart)
	if err := g.start(overloadRate, l.window+2*mostParts*part); err != nil {
		return 0, 0, err
	}
	rejoin, err := t.part(g, l)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, rejoin()) }()
	first, err := t.look(g, l.process)
	last := first
	var rates, costs series
	for range mostParts {
		if err != nil || ctx.Err() != nil || len(rates) == overloadParts {
			break
		}
		nap(part)
		var now glance
		if now, err = t.look(g, l.process); err == nil && !now.disturbed(&last) {
			rate, each := now.figures(&last)
			rates, costs = append(rates, rate), append(costs, each)
		}
		last = now
	}
	if err := errors.Join(err, ctx.Err(), g.halt()); err != nil {
		return 0, 0, err
	}
	_, err = t.settled()
	if len(rates) < leastParts {
		rate, each = last.figures(&first)
		return rate, each, err
	}
	return rates.median(), costs.median(), err
}

// part finds the thread of the contender that does the work, and keeps it off the
// generator's processor until rejoin. The work of one in Go may go on in another
// thread, which the kernel has to part from the generator's.
func (t *topology) part(g *generator, l *load) (rejoin func() error, err error) {
	begun, err := t.look(g, l.process)
	if err != nil {
		return nil, err
	}
	nap(l.window / 8)
	now, err := t.look(g, l.process)
	if err != nil {
		return nil, err
	}
	if rejoin, err = t.avoid(l.process, now.busiest(&begun), now.generator); err == nil {
		nap(l.window / 8)
	}
	return rejoin, err
}

// glance is what there is to see of a contender and the generator at a moment.
type glance struct {
	at        time.Time
	arrived   uint64
	generator int
	threads   map[int]threadTime // by number
}

// threadTime is for how long a thread has run, and waited for a processor.
type threadTime struct{ ran, waited time.Duration }

func (t *topology) look(g *generator, process string) (v glance, err error) {
	v.generator = int(g.thread.Load())
	if v.arrived, err = t.arrived(); err != nil {
		return v, err
	}
	v.at = time.Now()
	if v.threads, err = threadTimes("self"); err != nil || process == "" || process == "self" {
		return v, err
	}
	others, err := threadTimes(process)
	if err != nil {
		return v, err
	}
	others[v.generator] = v.threads[v.generator]
	v.threads = others
	return v, nil
}

// busiest is the thread, the generator's apart, that ran the most between two
// glances.
func (v *glance) busiest(since *glance) (thread int) {
	most := time.Duration(0)
	for no, t := range v.threads {
		if ran := t.ran - since.threads[no].ran; ran > most && no != v.generator {
			thread, most = no, ran
		}
	}
	return thread
}

// figures are the frames a second that arrived between two glances, and the
// nanoseconds that all threads but the generator's ran for each. One that comes to
// run on the generator's processor is charged with its softirqs; those beside the
// busiest run little.
func (v *glance) figures(since *glance) (rate, each float64) {
	frames := float64(v.arrived - since.arrived)
	ran := time.Duration(0)
	for no, t := range v.threads {
		if no != v.generator {
			ran += t.ran - since.threads[no].ran
		}
	}
	return frames / v.at.Sub(since.at).Seconds(), float64(ran.Nanoseconds()) / max(frames, 1)
}

// disturbed says whether the generator or the busiest other thread waited for too
// much of the time between two glances.
func (v *glance) disturbed(since *glance) bool {
	busiest := v.busiest(since)
	waited := max(v.threads[busiest].waited-since.threads[busiest].waited, v.threads[v.generator].waited-since.threads[v.generator].waited)
	return waited.Seconds() > mostDisturbed*v.at.Sub(since.at).Seconds()
}

// threadTimes is the times of each thread of a process, by its number.
func threadTimes(process string) (map[int]threadTime, error) {
	dir := "/proc/" + process + "/task/"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	times := make(map[int]threadTime)
	for _, thread := range threads {
		t, err := readThreadTime(dir + thread.Name() + "/schedstat")
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		number, err2 := strconv.Atoi(thread.Name())
		if err := errors.Join(err, err2); err != nil {
			return nil, err
		}
		times[number] = t
	}
	return times, nil
}

// readThreadTime reads a thread's schedstat.
func readThreadTime(path string) (threadTime, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return threadTime{}, err
	}
	var ran, waited int64
	if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
		return threadTime{}, fmt.Errorf("%s: %q: %w", path, text, err)
	}
	return threadTime{time.Duration(ran), time.Duration(waited)}, nil
}
