package bench

import (
	"os"
	"testing"
	"time"
)

// TestUsageOf: a process that works has more of the processors afterwards, and
// one that is not there is an error.
func TestUsageOf(t *testing.T) {
	before, err := usageOf("self")
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
		_ = os.Getpid()
	}
	after, err := usageOf("self")
	if err != nil || after.busy <= before.busy || after.runs == 0 {
		t.Errorf("%+v, then %+v: %v", before, after, err)
	}
	if _, err := usageOf("0"); err == nil {
		t.Error("process 0 has threads")
	}
}
