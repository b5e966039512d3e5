package dataplane

import (
	"sync/atomic"
	"testing"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// TestLiveCountsNoMoreThanWanted: two workers have a walk each when one more is wanted. One of
// them is reported and counted.
func TestLiveCountsNoMoreThanWanted(t *testing.T) {
	l := &LiveTrace{req: LiveRequest{Count: 1}, walks: make(chan watched, 2), rings: make([]atomic.Int32, 2)}
	for worker := range 2 {
		if !l.reserveWalk(worker) {
			t.Fatal("there is no room")
		}
	}
	for worker := range 2 {
		l.end(&telemetry.Trace{Live: &telemetry.Arrival{}}, worker)
	}
	if c := l.Counts(); len(l.walks) != 1 || c != (telemetry.LiveCounts{Matched: 2, Told: 1}) {
		t.Errorf("%d walks, counted %+v", len(l.walks), c)
	}
}
