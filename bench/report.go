package bench

import (
	"fmt"
	"io"
	"slices"
)

// series is what one side reached, round by round, in frames or bits per second.
type series []float64

// median is the middle value, or the mean of the two middle ones; 0 of none.
func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// over is the ratio of each value to its neighbour's.
func (s series) over(other series) series {
	ratios := make(series, len(s))
	for i := range s {
		ratios[i] = s[i] / other[i]
	}
	return ratios
}

// summary is what a table ends with.
var summary = []struct {
	name string
	of   func(series) float64
}{
	{"min", func(s series) float64 { return slices.Min(s) }},
	{"median", series.median},
	{"max", func(s series) float64 { return slices.Max(s) }},
}

// report writes minimum, median and maximum of both sides and of the ratio of
// the rounds, which is not the ratio of the medians.
func report(w io.Writer, a, b series) {
	if len(a) == 0 {
		return
	}
	ratio := a.over(b)
	for _, line := range summary {
		fmt.Fprintf(w, "%-8s %7.3f Mpps %7.3f Mpps %8.2f\n", line.name, line.of(a)/1e6, line.of(b)/1e6, line.of(ratio))
	}
}
