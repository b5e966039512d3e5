package rig

import (
	"math"
	"testing"
)

// TestSummaryLeavesOutNaN checks that rounds without a figure do not count, and have no ratio.
func TestSummaryLeavesOutNaN(t *testing.T) {
	b := Summary{Sides: []string{"a", "b"}}
	for _, round := range [][2]float64{{100, 50}, {math.NaN(), 70}, {100, 60}, {0, 90}} {
		b.Add("a", 0, []Reading{{Name: "x", Unit: "ns", Value: round[0]}})
		b.Add("b", 0, []Reading{{Name: "x", Unit: "ns", Value: round[1]}})
	}
	first, second := b.Lines()[0].Reached[0], b.Lines()[0].Reached[1]
	if first.Rounds != 3 || second.Rounds != 4 || second.Ratio != 0.55 {
		t.Errorf("%+v, %+v: want 3 and 4 rounds and the ratio 0.55", first, second)
	}
}
