package conntrack

import (
	"fmt"
	"math"
	"time"

	"github.com/antrail/antrail/bench/report"
)

// figure is the name of a figure. If it is measured at several sizes, the size follows the name.
type figure string

const (
	lookupRate     figure = "known connections, packets a second"
	lookupRate2    figure = "known connections, two workers"
	creationRate   figure = "new connections a second"
	creationRate2  figure = "new connections a second, two workers"
	entrySize      figure = "memory of a connection"
	sweepTime      figure = "one round of the sweep"
	restoreTime    figure = "taking over from the process before"
	answeredFull   figure = "new one when the table is full of answered ones"
	evictionTime   figure = "new one in the place of an unanswered one"
	refusalPortNAT figure = "refused: the port range is exhausted"
)

// atSize is the figure with n connections in the table.
func (f figure) atSize(n int) figure { return figure(fmt.Sprintf("%s, of %d", f, n)) }

// figures is the figures of one round of one side.
type figures map[figure]float64

// millions is the unit of rates.
const millions = "M/s"

// shownLine is a figure as a line of the comparison.
type shownLine struct {
	figure
	name, unit string
	x          float64 // connections in the table; 0 if there is one size only
}

// lines lists the figures, in the order of the comparison.
func (o *Options) lines() (lines []shownLine) {
	for _, f := range []figure{lookupRate, lookupRate2, creationRate, creationRate2} {
		for _, n := range o.sizes() {
			lines = append(lines, shownLine{f.atSize(n), string(f), millions, float64(n)})
		}
	}
	for _, l := range []struct {
		figure
		unit string
	}{{entrySize, "bytes"}, {sweepTime, "ms"}, {restoreTime, "ms"}, {answeredFull, "µs"}, {evictionTime, "µs"}, {refusalPortNAT, "µs"}} {
		lines = append(lines, shownLine{l.figure, string(l.figure), l.unit, 0})
	}
	return lines
}

// seriesOf returns one figure of all rounds that have it.
func seriesOf(rounds []figures, f figure) (s report.Series) {
	for _, r := range rounds {
		if v, ok := r[f]; ok {
			s = append(s, v)
		}
	}
	return s
}

// millionsPerSecond is the rate of n packets. took is a difference of two times, so it may be 0 or less;
// then the rate is NaN.
func millionsPerSecond(n int, took time.Duration) float64 {
	if took <= 0 {
		return math.NaN()
	}
	return float64(n) / 1e6 / took.Seconds()
}

// microsEach is the time of each of n packets, in microseconds.
func microsEach(n int, took time.Duration) float64 { return float64(took) / 1e3 / float64(n) }
