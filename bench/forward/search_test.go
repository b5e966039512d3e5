package forward

import (
	"io"
	"testing"
)

// TestFindHighestRate searches switches whose loss is known.
func TestFindHighestRate(t *testing.T) {
	for _, limit := range []float64{5_000, 6_000, 123_456, 1e6, 3.9e6} {
		tries := 0
		got, err := findHighestRate(5_000, 4e6, 1.05, func(rate float64) (bool, error) { tries++; return rate <= limit, nil })
		if err != nil || got > limit || got < limit/1.05 || tries > 10 {
			t.Errorf("limit %v: %v after %d tries, %v", limit, got, tries, err)
		}
	}
	if got, _ := findHighestRate(5_000, 4e6, 1.05, func(float64) (bool, error) { return true, nil }); got != 4e6 {
		t.Errorf("without loss: %v", got)
	}
	if got, _ := findHighestRate(5_000, 4e6, 1.05, func(float64) (bool, error) { return false, nil }); got != 0 {
		t.Errorf("with loss at any rate: %v", got)
	}
	if _, err := findHighestRate(5_000, 4e6, 1.05, func(float64) (bool, error) { return false, io.ErrUnexpectedEOF }); err != io.ErrUnexpectedEOF {
		t.Errorf("%v", err)
	}
}
