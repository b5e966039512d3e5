package sched

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// TestReap checks that a child's end is reported as by cmd.Wait.
func TestReap(t *testing.T) {
	var out strings.Builder
	cmd := exec.Command("sh", "-c", "echo gone; exit 3")
	cmd.Stdout = &out
	var exit *exec.ExitError
	if err := RunCommand(cmd); !errors.As(err, &exit) || exit.ExitCode() != 3 || out.String() != "gone\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := RunCommand(exec.Command("/nonexistent")); err == nil {
		t.Error("no program, and no error")
	}
}
