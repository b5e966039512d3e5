package pipeline

import (
	"slices"
	"testing"
	"time"
)

// TestNextDecade checks that the time a switch needs to start is not multiplied by ten.
func TestNextDecade(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		took []time.Duration
		want time.Duration
	}{
		{[]time.Duration{3 * s}, 3 * s},
		{[]time.Duration{3 * s, 2 * s}, 2 * s},
		{[]time.Duration{3 * s, 2 * s, 5 * s}, 35 * s},
	} {
		if got := nextDecade(c.took); got != c.want {
			t.Errorf("after %v: %v, want %v", c.took, got, c.want)
		}
	}
}

// TestDecades checks the sizes of a sweep.
func TestDecades(t *testing.T) {
	for largest, want := range map[int][]int{10: {10}, 99: {10}, 100: {10, 100}, 100_000: {10, 100, 1000, 10_000, 100_000}} {
		if got := decadesTo(largest); !slices.Equal(got, want) {
			t.Errorf("%d: %v, want %v", largest, got, want)
		}
	}
}
