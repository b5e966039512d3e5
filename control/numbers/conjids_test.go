package numbers

import (
	"testing"
	"time"
)

// TestConjunctionIDs: ids start at 2. A freed id rests for five seconds; then ids are reused
// in the order in which they were freed.
func TestConjunctionIDs(t *testing.T) {
	now := time.Unix(0, 0)
	ids := NewConjunctionIDs(func() time.Time { return now })
	want := func(id uint32) {
		t.Helper()
		if got := ids.Assign(); got != id {
			t.Errorf("id %d, want %d", got, id)
		}
	}
	want(2)
	want(3)
	want(4)
	ids.Free(3)
	now = now.Add(time.Second)
	ids.Free(2)
	want(5)
	now = now.Add(4 * time.Second)
	want(3)
	want(6)
	now = now.Add(time.Second)
	want(2)
	want(7)
}
