package nstest

import (
	"testing"
	"time"
)

// waitAtMost is how long Until waits: far longer than the kernel of a busy machine takes.
const waitAtMost = 30 * time.Second

// Until waits for what the kernel does a little after its cause, asking each
// millisecond on the calling goroutine, and fails the test when that never holds.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(waitAtMost); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}
