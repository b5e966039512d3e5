package sched

import (
	"testing"
	"time"
)

// TestWakeBucket checks the bounds of the histogram.
func TestWakeBucket(t *testing.T) {
	for d, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, 999: 0, time.Microsecond: 1, 2 * time.Microsecond: 2, 3999: 2,
		4 * time.Microsecond: 3, 16383 * time.Microsecond: 14, 16384 * time.Microsecond: 15, time.Hour: 15,
	} {
		if got := wakeBucket(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}
