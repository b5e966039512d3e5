package forward

import (
	"context"
	"errors"
	"time"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/sched"
	"github.com/antrail/antrail/bench/testbed"
)

// Contender and generator never sleep and have a processor each, of which other programs want a part. So
// a window is measured in short parts. If one of the two threads waited for its processor in a part, the
// part is dropped, since it says nothing of the contender. If hardly any parts are left, the figures are
// those of all parts together.

const (
	overloadParts = 12 // undisturbed parts that a window has
	leastParts    = 4  // fewest parts that make a median
	mostParts     = 48 // most parts, with dropped ones
	shortestPart  = 4 * time.Millisecond
)

// measureOverload sends more frames than come through. It returns how many come through a second, and
// how many nanoseconds the contender's threads run for each; 0 if it has no threads. Before that,
// queues and caches fill for a quarter of the window.
func (l *load) measureOverload(ctx context.Context, g *testbed.Generator) (rate, each float64, err error) {
	part := max(l.window/overloadParts, shortestPart)
	if err := g.Start(overloadRate, l.window+2*mostParts*part); err != nil {
		return 0, 0, err
	}
	rejoin, err := l.separateThreads(g)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, rejoin()) }()
	first, err := l.takeSnapshot(g)
	last := first
	var rates, costs report.Series
	for range mostParts {
		if err != nil || ctx.Err() != nil || len(rates) == overloadParts {
			break
		}
		sched.Nap(part)
		var now snapshot
		if now, err = l.takeSnapshot(g); err == nil && !now.disturbedSince(&last) {
			rate, each := now.figuresSince(&last)
			rates, costs = append(rates, rate), append(costs, each)
		}
		last = now
	}
	if err := errors.Join(err, ctx.Err(), g.Halt()); err != nil {
		return 0, 0, err
	}
	_, err = l.links.SettledArrivals()
	if len(rates) < leastParts {
		rate, each = last.figuresSince(&first)
		return rate, each, err
	}
	return rates.Median(), costs.Median(), err
}

// separateThreads finds the contender's thread that does the work, and keeps it off the generator's
// processor until rejoin is called. A goroutine may later run on another thread. The kernel must keep
// that one apart from the generator.
func (l *load) separateThreads(g *testbed.Generator) (rejoin func() error, err error) {
	begun, err := l.takeSnapshot(g)
	if err != nil {
		return nil, err
	}
	sched.Nap(l.window / 8)
	now, err := l.takeSnapshot(g)
	if err != nil {
		return nil, err
	}
	if rejoin, err = l.links.KeepOffGenerator(l.process, now.busiestSince(&begun), now.generator); err == nil {
		sched.Nap(l.window / 8)
	}
	return rejoin, err
}

// snapshot is the state of contender and generator at a moment.
type snapshot struct {
	at        time.Time
	arrived   uint64
	generator int                      // number of its thread
	threads   map[int]sched.ThreadTime // of both, by number
}

// takeSnapshot reads how many frames have arrived, and the times of all threads.
func (l *load) takeSnapshot(g *testbed.Generator) (v snapshot, err error) {
	v.generator = g.ThreadNumber()
	if v.arrived, err = l.links.Arrived(); err != nil {
		return v, err
	}
	v.at = time.Now()
	if v.threads, err = sched.ThreadTimes("self"); err != nil || l.process == "" || l.process == "self" {
		return v, err
	}
	others, err := sched.ThreadTimes(l.process)
	if err != nil {
		return v, err
	}
	others[v.generator] = v.threads[v.generator]
	v.threads = others
	return v, nil
}

// busiestSince returns the thread that ran the most since a snapshot, other than the generator.
func (v *snapshot) busiestSince(since *snapshot) (thread int) {
	most := time.Duration(0)
	for no, t := range v.threads {
		if ran := t.Ran - since.threads[no].Ran; ran > most && no != v.generator {
			thread, most = no, ran
		}
	}
	return thread
}

// figuresSince returns how many frames a second arrived since a snapshot, and how many nanoseconds all
// threads other than the generator ran for each. A thread that comes to run on the generator's processor
// is charged with the generator's softirqs.
func (v *snapshot) figuresSince(since *snapshot) (rate, each float64) {
	frames := float64(v.arrived - since.arrived)
	ran := time.Duration(0)
	for no, t := range v.threads {
		if no != v.generator {
			ran += t.Ran - since.threads[no].Ran
		}
	}
	return frames / v.at.Sub(since.at).Seconds(), float64(ran.Nanoseconds()) / max(frames, 1)
}

// disturbedSince says whether the generator or the busiest other thread has waited too long since a
// snapshot.
func (v *snapshot) disturbedSince(since *snapshot) bool {
	busiest := v.busiestSince(since)
	waited := max(v.threads[busiest].Waited-since.threads[busiest].Waited, v.threads[v.generator].Waited-since.threads[v.generator].Waited)
	return waited.Seconds() > sched.MostDisturbed*v.at.Sub(since.at).Seconds()
}
