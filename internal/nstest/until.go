package nstest

import (
	"testing"
	"time"
)

// waitAtMost is how long Until waits: far longer than the kernel of a busy machine takes.
const waitAtMost = 30 * time.Second

// Until calls holds every millisecond on the calling goroutine until it is true. It waits for
// effects that the kernel delays, and fails the test if the condition never holds.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(waitAtMost); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}
