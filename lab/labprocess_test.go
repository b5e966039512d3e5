package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEndTellsGoroutines: if a process ignores SIGTERM, the error has what it writes at
// SIGQUIT, and nothing older.
func TestEndTellsGoroutines(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	hangs := exec.Command("sh", "-c", `trap '' TERM; trap 'echo goroutine 1 >&2; exit' QUIT; echo begins >&2; while :; do sleep 0.01; done`)
	hangs.Stderr = log
	ends := exec.Command("sleep", "1h")
	var all []Process
	for _, c := range []*exec.Cmd{hangs, ends} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		p, is := processOf(c.Process.Pid)
		if !is {
			t.Fatal("no process")
		}
		all = append(all, p)
	}
	for {
		if text, err := os.ReadFile(log.Name()); err != nil {
			t.Fatal(err)
		} else if len(text) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	err = end(all, 100*time.Millisecond)
	if err == nil || !strings.HasSuffix(err.Error(), "SIGQUIT:\ngoroutine 1\n") || strings.Contains(err.Error(), "begins") || strings.Count(err.Error(), "after SIGQUIT") != 1 {
		t.Error(err)
	}
	if err := ends.Wait(); ends.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the other process: %v", err)
	}
}
