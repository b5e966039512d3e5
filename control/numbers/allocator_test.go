package numbers

import "testing"

// TestNumbers assigns numbers, frees them and assigns them again.
func TestNumbers(t *testing.T) {
	n := NewAllocator[string](5, 7)
	take := func(who string, want uint32, ok bool) {
		t.Helper()
		if id, got := n.Assign(who); id != want || got != ok {
			t.Errorf("Assign(%q) = %d, %v; want %d, %v", who, id, got, want, ok)
		}
	}
	take("a", 5, true)
	take("b", 6, true)
	take("a", 5, true) // the same number again
	take("c", 7, true)
	take("d", 0, false)
	n.Free("b")
	n.Free("nobody")
	take("d", 6, true)
	n.Free("a")
	n.Free("c")
	take("e", 5, true) // the lowest, not the last one freed
	take("b", 7, true)
	take("x", 0, false)
}
