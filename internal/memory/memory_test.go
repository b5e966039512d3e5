package memory

import (
	"runtime"
	"testing"
)

var kept [][]byte

// TestReturnSpare: memory of objects that nothing refers to any more is given back, once.
// Memory that is in use is not, however much it is.
func TestReturnSpare(t *testing.T) {
	returnSpare()
	for range 3 * spare >> 20 {
		kept = append(kept, make([]byte, 1<<20))
	}
	runtime.GC() // all of it is known to be in use
	if returnSpare() {
		t.Error("memory in use counts as spare")
	}
	kept = nil
	for range 2 * spare >> 20 { // garbage since the last collection
		kept = [][]byte{make([]byte, 1<<20)}
	}
	if !returnSpare() {
		t.Errorf("%d bytes are spare, and are not returned", spareBytes())
	}
	if left := spareBytes(); left >= spare {
		t.Errorf("%d bytes are spare after they were returned", left)
	}
}
