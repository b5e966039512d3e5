package program

import (
	"math/rand/v2"
	"testing"

	"github.com/antrail/antrail/flow"
)

// TestEvenWeights: the shorter way to choose among buckets of one weight
// chooses as the other does.
func TestEvenWeights(t *testing.T) {
	g := newGroup(&flow.Group{Type: flow.GroupSelect, Buckets: []flow.Bucket{{ID: 3, Weight: 7}, {ID: 4, Weight: 7}, {ID: 9, Weight: 7}}}, nil)
	if !g.even {
		t.Fatal("equal weights are not seen")
	}
	uneven := *g
	uneven.even = false
	for range 10_000 {
		h := rand.Uint64()
		if a, b := g.Choose(h), uneven.Choose(h); a != b {
			t.Fatalf("hash %#x: bucket %d, and %d by weights", h, a, b)
		}
	}
	for _, buckets := range [][]flow.Bucket{nil, {{ID: 1}}, {{ID: 1, Weight: 1}, {ID: 2, Weight: 2}}} {
		if evenWeights(buckets) {
			t.Errorf("%v have one weight", buckets)
		}
	}
}
