package report

import (
	"math"
	"testing"
)

func TestSeries(t *testing.T) {
	if got := (Series{1, 2, 3, 4}).Median(); got != 2.5 {
		t.Errorf("median of an even number is %v, want 2.5", got)
	}
	if got := (Series{2, 1, 3}).Median(); got != 2 {
		t.Errorf("median of an odd number is %v, want 2", got)
	}
	if got := (Series{1, 2, 3, 4}).RatiosTo(Series{2, 1, 3, 1}).Median(); math.Abs(got-1.5) > 1e-9 { // 0.5, 2, 1, 4
		t.Errorf("median ratio %v, want 1.5", got)
	}
}
