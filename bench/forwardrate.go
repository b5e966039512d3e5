package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// What profile forward asks of a contender with one load: the rate under
// overload, and the highest without loss.

// The highest rate of the generator in frames a second, which is overload for
// all; the range of the search around what gets through then, its precision,
// the part of the frames that may be lost, and in how many tries: a shared
// machine takes the processor away for a moment now and then.
const (
	overloadRate  = 4_000_000
	searchBelow   = 16
	searchAbove   = 1.5
	ratePrecision = 1.05
	tolerance     = 0.001
	lossTries     = 3
)

// searchPart is the part of a window that one try of the search lasts, and
// longestSearch the time for all of them: after that, no rate is sustained any
// more.
const (
	searchPart    = 4
	longestSearch = 3 * time.Second
)

// load is the frames of a measurement.
type load struct {
	mix     *mix
	fresh   bool // each is the first of a new connection; they are of one size then
	name    string
	process string // of running
	window  time.Duration
}

// rates measures one load.
func (t *topology) rates(ctx context.Context, l *load) (readings []reading, err error) {
	change := l.mix.instructions()
	if l.fresh {
		change = changePorts.instructions()
	}
	g, err := t.startGenerator(l.mix.frame(), change)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	over, spent, err := t.overload(ctx, g, l)
	if err != nil {
		return nil, err
	}
	readings = append(readings, reading{l.name + ", overload", "Mpps", over / 1e6})
	if l.process != "" && over > 0 {
		readings = append(readings, reading{l.name + ", overload, processor time", "ns", spent / over * 1e9})
	}
	end := time.Now().Add(longestSearch)
	lossless, err := highestRate(max(over, 1)/searchBelow, max(over, 1)*searchAbove, ratePrecision, func(rate float64) (bool, error) {
		if time.Now().After(end) {
			return false, ctx.Err()
		}
		return t.sustains(ctx, g, rate, l.window/searchPart)
	})
	return append(readings, reading{l.name + ", without loss", "Mpps", lossless / 1e6}), err
}

// overload sends more than can get through, and returns the frames a second
// that do and the part of a processor that the contender takes meanwhile. The
// first quarter of the time is not counted: queues fill and caches learn.
func (t *topology) overload(ctx context.Context, g *generator, l *load) (rate, spent float64, err error) {
	if err := g.start(overloadRate, l.window*3/2); err != nil { // there is traffic still when the second look is late
		return 0, 0, err
	}
	nap(l.window / 4)
	before, err := t.look(l.process)
	if err != nil {
		return 0, 0, err
	}
	nap(l.window * 3 / 4)
	after, err := t.look(l.process)
	if err != nil {
		return 0, 0, err
	}
	took := after.at.Sub(before.at).Seconds()
	_, err = t.settled()
	return float64(after.arrived-before.arrived) / took, after.spent(&before, g.thread.Load()).Seconds() / took, errors.Join(err, ctx.Err())
}

// glance is what there is to see of a contender at a moment.
type glance struct {
	at      time.Time
	arrived uint64
	ran     map[string]time.Duration // what each thread has run
}

func (t *topology) look(process string) (v glance, err error) {
	if v.arrived, err = t.arrived(); err != nil {
		return v, err
	}
	v.at = time.Now()
	if process != "" {
		v.ran, err = threadTimes(process)
	}
	return v, err
}

// spent is what the busiest thread but one ran between two glances. The others
// of a process do little, and are charged with the generator's softirqs when
// they come to run on its processor.
func (v *glance) spent(since *glance, except int64) (most time.Duration) {
	for thread, ran := range v.ran {
		if thread != strconv.FormatInt(except, 10) {
			most = max(most, ran-since.ran[thread])
		}
	}
	return most
}

// threadTimes is what each thread of a process has run.
func threadTimes(process string) (map[string]time.Duration, error) {
	dir := "/proc/" + process + "/task/"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	ran := make(map[string]time.Duration)
	for _, thread := range threads {
		text, err := os.ReadFile(dir + thread.Name() + "/schedstat")
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s%s/schedstat: %w", dir, thread.Name(), err)
		}
		ran[thread.Name()] = time.Duration(ns)
	}
	return ran, nil
}

// sustains says whether frames at a rate arrive in one of the tries.
func (t *topology) sustains(ctx context.Context, g *generator, rate float64, window time.Duration) (bool, error) {
	for range lossTries {
		before, err := t.arrived()
		if err != nil {
			return false, err
		}
		sent, err := g.sendFor(ctx, rate, window)
		if err != nil {
			return false, err
		}
		after, err := t.settled()
		if err != nil {
			return false, err
		}
		if float64(after-before) >= (1-tolerance)*float64(sent) && float64(sent)/window.Seconds() > 0.9*rate {
			return true, nil
		}
	}
	return false, nil
}

// settle is how long no frame has to arrive until none is under way any more,
// and longestSettle how long frames may arrive after all were sent.
const (
	settle        = 5 * time.Millisecond
	longestSettle = time.Second
)

// settled is how many frames have arrived when no more come.
func (t *topology) settled() (uint64, error) {
	last, err := t.arrived()
	for end := time.Now().Add(longestSettle); err == nil && time.Now().Before(end); {
		nap(settle)
		var n uint64
		if n, err = t.arrived(); n == last {
			break
		}
		last = n
	}
	return last, err
}
