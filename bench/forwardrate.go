package bench

import (
	"context"
	"errors"
	"math"
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
	over, each, err := t.overload(ctx, g, l)
	if err != nil {
		return nil, err
	}
	readings = append(readings, reading{l.name + ", overload", "Mpps", over / 1e6})
	if l.process != "" {
		readings = append(readings, reading{l.name + ", overload, processor time", "ns", each})
	}
	end := time.Now().Add(longestSearch)
	lossless, err := highestRate(max(over, 1)/searchBelow, max(over, 1)*searchAbove, ratePrecision, func(rate float64) (bool, error) {
		if time.Now().After(end) {
			return false, ctx.Err()
		}
		return t.sustains(ctx, g, rate, l.window/searchPart)
	})
	if lossless == 0 && time.Now().After(end) {
		lossless = math.NaN() // the search had no time to go low enough
	}
	return append(readings, reading{l.name + ", without loss", "Mpps", lossless / 1e6}), err
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
