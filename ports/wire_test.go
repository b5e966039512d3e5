package ports

import (
	"testing"

	"github.com/antrail/antrail/internal/wiretest"
)

// TestValuesCross: every value with a JSON form arrives as it was sent.
func TestValuesCross(t *testing.T) {
	f := wiretest.New(t, 31)
	for range 300 {
		wiretest.Same(t, wiretest.Value[Info](f))
		wiretest.Same(t, wiretest.Value[Stats](f))
		wiretest.Same(t, wiretest.Value[DropSample](f))
	}
}
