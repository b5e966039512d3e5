package pipeline

import (
	"testing"
)

// TestSelectSamples checks that samples that are disturbed a little are used if there are no others.
func TestSelectSamples(t *testing.T) {
	g := selectSamples([]sample{{nanoseconds: 5, disturbed: 0.4}, {nanoseconds: 4, disturbed: 0.09}, {nanoseconds: 3, disturbed: 0.05}, {nanoseconds: 2, disturbed: 0.06}}, samplesOfRound)
	if len(g.kept) != 2 || g.kept[0].nanoseconds != 3 || g.kept[1].nanoseconds != 2 || g.dropped != 2 || g.tolerated != 2 {
		t.Errorf("%+v", g)
	}
}
