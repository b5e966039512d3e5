package forward

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/antrail/antrail/bench/rig"
	"github.com/antrail/antrail/bench/testbed"
)

const (
	// overloadRate is the generator's highest rate in frames a second. No contender takes as many.
	overloadRate = 4_000_000
	// searchBelow and searchAbove bound the search for the rate without loss. They are factors of the
	// rate under overload.
	searchBelow, searchAbove = 16, 1.5
	// ratePrecision is the factor to which the search is exact.
	ratePrecision = 1.05
	// tolerance is the part of the frames that may be lost.
	tolerance = 0.001
	// lossTries is how many tries a rate has. A shared machine takes the processor away now and then.
	lossTries = 3
	// searchPart is the part of a window that one try lasts: a quarter.
	searchPart = 4
	// longestSearch is how long a search may take. After that no rate counts as sustained.
	longestSearch = 3 * time.Second
)

// load is the frames that a contender is measured with.
type load struct {
	links *testbed.Topology
	mix   *mix
	// newConnections says that each frame begins a connection. The mix has one size then.
	newConnections bool
	name           string
	process        string // of running
	window         time.Duration
}

// measureLoad measures one load: the rate under overload, and the highest rate without loss.
func measureLoad(ctx context.Context, l *load) (readings []rig.Reading, err error) {
	change := l.mix.instructions()
	if l.newConnections {
		change = testbed.ChangePorts.Instructions()
	}
	g, err := l.links.StartGenerator(l.mix.frame(), change)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	over, each, err := l.measureOverload(ctx, g)
	if err != nil {
		return nil, err
	}
	readings = append(readings, rig.Reading{Name: l.name + ", overload", Unit: "Mpps", Value: over / 1e6})
	if l.process != "" {
		readings = append(readings, rig.Reading{Name: l.name + ", overload, processor time", Unit: "ns", Value: each})
	}
	end := time.Now().Add(longestSearch)
	lossless, err := findHighestRate(max(over, 1)/searchBelow, max(over, 1)*searchAbove, ratePrecision, func(rate float64) (bool, error) {
		if time.Now().After(end) {
			return false, ctx.Err()
		}
		return l.sustains(ctx, g, rate, l.window/searchPart)
	})
	if lossless == 0 && time.Now().After(end) {
		lossless = math.NaN() // the search had no time to go low enough
	}
	return append(readings, rig.Reading{Name: l.name + ", without loss", Unit: "Mpps", Value: lossless / 1e6}), err
}

// sustains says whether nearly all frames at a rate arrive, in one of the tries.
func (l *load) sustains(ctx context.Context, g *testbed.Generator, rate float64, window time.Duration) (bool, error) {
	for range lossTries {
		before, err := l.links.Arrived()
		if err != nil {
			return false, err
		}
		sent, err := g.SendFor(ctx, rate, window)
		if err != nil {
			return false, err
		}
		after, err := l.links.SettledArrivals()
		if err != nil {
			return false, err
		}
		if float64(after-before) >= (1-tolerance)*float64(sent) && float64(sent)/window.Seconds() > 0.9*rate {
			return true, nil
		}
	}
	return false, nil
}
