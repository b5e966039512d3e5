package sched

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestCollectionsAreSeen: a worker knows that a collection began, until its time is over.
func TestCollectionsAreSeen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // none but those below
	c := NewCollections()
	seen := func(now time.Duration, want bool) {
		t.Helper()
		if got := c.MayBe(now); got != want {
			t.Fatalf("at %v a collection may be at work: %v, want %v", now, got, want)
		}
	}
	seen(0, true) // it has just begun, so a collection may run
	seen(collectionTime-1, true)
	seen(collectionTime, false)
	for _, at := range []time.Duration{time.Second, 2 * time.Second} {
		runtime.GC()
		seen(at, true)
		seen(at+collectionTime-1, true)
		seen(at+collectionTime, false)
	}
	if n := testing.AllocsPerRun(100, func() { c.MayBe(3 * time.Second) }); n != 0 {
		t.Errorf("asking allocates %v times", n)
	}
}
