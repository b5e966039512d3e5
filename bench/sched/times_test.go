package sched

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// TestUsageOf checks that work adds processor time, that two processes have more than one, and that a
// process that does not exist is an error. A child works, since threads of this process may end
// meanwhile.
func TestUsageOf(t *testing.T) {
	child := exec.Command("sh", "-c", "while :; do :; done")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	pid := strconv.Itoa(child.Process.Pid)
	before, err := UsageOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	after := before
	for end := time.Now().Add(time.Minute); after.Busy <= before.Busy && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if after, err = UsageOf(pid); err != nil {
			t.Fatal(err)
		}
	}
	if after.Busy <= before.Busy || after.Runs == 0 {
		t.Errorf("%+v, then %+v", before, after)
	}
	both, err := UsageOf(pid, strconv.Itoa(os.Getppid()))
	if err != nil || both.Busy < after.Busy || both.Runs <= after.Runs {
		t.Errorf("%+v with the parent's, after %+v alone: %v", both, after, err)
	}
	if _, err := UsageOf(pid, "0"); err == nil {
		t.Error("process 0 has threads")
	}
}
