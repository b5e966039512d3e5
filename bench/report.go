package bench

import (
	"math"
	"slices"
)

// series is what one side reached, round by round, in whatever unit.
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

// over is the ratio of each value to its neighbour's; NaN where one of them is
// not known, or the neighbour's is 0.
func (s series) over(other series) series {
	ratios := make(series, len(s))
	for i := range s {
		if ratios[i] = s[i] / other[i]; other[i] == 0 {
			ratios[i] = math.NaN()
		}
	}
	return ratios
}

// known is the series without its NaNs.
func (s series) known() (k series) {
	for _, v := range s {
		if !math.IsNaN(v) {
			k = append(k, v)
		}
	}
	return k
}
