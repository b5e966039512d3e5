package pipeline

import (
	"errors"
	"math"
	"slices"

	"github.com/antrail/antrail/bench/report"
	"github.com/antrail/antrail/bench/sched"
)

// sample is what a packet cost in one short window.
type sample struct {
	// packets is how many packets the sample is of.
	packets float64
	// nanoseconds, allocations and entries are those of a packet, entries the ones that it took.
	nanoseconds, allocations, entries float64
	tables                            *[]tableTime // nil if tables are not measured
	// disturbed is a part of the window, from 0 to 1. In it the measured thread waited for a processor,
	// or the host had the machine's.
	disturbed float64
}

// errLost says that a sample's packets were lost, since the contender or the generator did not run.
var errLost = errors.New("hardly any packets came through")

const (
	// samplesOfRound is how many samples a round has of each kind of packets.
	samplesOfRound = 4
	// samplesOfSweep is samplesOfRound at each size of a sweep.
	samplesOfSweep = 2
	// samplesOfTables is samplesOfRound for tables.
	samplesOfTables = 2
	// mostSamples is how many times as many samples are taken at most, with dropped ones.
	mostSamples = 2
	// mostSamplesInNeed is mostSamples for a kind that has no usable sample yet.
	mostSamplesInNeed = 10
	// mostTolerable is the disturbed part up to which a sample is used if there are no better ones.
	mostTolerable = 0.1
)

// sampleSet is the samples of one kind of packets in one round.
type sampleSet struct {
	kept []sample
	// dropped and tolerated are how many samples were dropped, and kept although disturbed.
	dropped, tolerated int
}

// selectSamples keeps the undisturbed samples. If they are less than half of want, it also keeps the least
// disturbed ones that are usable.
func selectSamples(all []sample, want int) (g sampleSet) {
	slices.SortFunc(all, func(a, b sample) int { return int((a.disturbed - b.disturbed) * 1e6) })
	n := 0
	for n < len(all) && all[n].disturbed <= sched.MostDisturbed {
		n++
	}
	keep := n
	for keep < min(len(all), max(1, want/2)) && isUsable(all[keep]) {
		keep++
	}
	return sampleSet{all[:keep], len(all) - keep, keep - min(n, keep)}
}

// median is the median of one value of the samples; NaN if no sample was kept.
func (g *sampleSet) median(of func(sample) float64) float64 {
	if len(g.kept) == 0 {
		return math.NaN()
	}
	var s report.Series
	for _, c := range g.kept {
		s = append(s, of(c))
	}
	return s.Median()
}

// nanoseconds, allocations and entries select a value for median.
func nanoseconds(c sample) float64 { return c.nanoseconds }
func allocations(c sample) float64 { return c.allocations }
func entries(c sample) float64     { return c.entries }

// isUsable reports whether a sample may be used when no better one exists.
func isUsable(c sample) bool { return c.disturbed <= mostTolerable }

// countUndisturbed counts the undisturbed samples.
func countUndisturbed(all []sample) (n int) {
	for _, c := range all {
		if c.disturbed <= sched.MostDisturbed {
			n++
		}
	}
	return n
}
