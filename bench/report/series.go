package report

import (
	"math"
	"slices"
)

// Series is one side's figures, round by round, in one unit.
type Series []float64

// Median is the middle value, or the mean of the two middle values. It is 0 for an empty series.
func (s Series) Median() float64 {
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

// RatiosTo is the ratio of each value to that of other in the same round. It is NaN where either is
// NaN, or where the other is 0.
func (s Series) RatiosTo(other Series) Series {
	ratios := make(Series, len(s))
	for i := range s {
		if ratios[i] = s[i] / other[i]; other[i] == 0 {
			ratios[i] = math.NaN()
		}
	}
	return ratios
}

// WithoutNaN is the series without its NaN values, those of rounds that gave no figure.
func (s Series) WithoutNaN() (k Series) {
	for _, v := range s {
		if !math.IsNaN(v) {
			k = append(k, v)
		}
	}
	return k
}
