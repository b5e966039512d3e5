//go:build linux && !portable

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent"
)

// lifeEnv says which life of a process TestStartsAgain is in: the test begins the
// first one as a process of its own.
const lifeEnv = "ANTRAIL_TEST_LIFE"

// TestStartsAgain: an agent whose successor failed becomes the same program again, with
// the same arguments and number.
func TestStartsAgain(t *testing.T) {
	switch os.Getenv(lifeEnv) {
	case "1":
		os.Setenv(lifeEnv, "2")
		fmt.Println("first", os.Getpid())
		t.Fatal(after(t.Context(), errors.Join(agent.ErrAgain, errors.New("hung up")), false))
	case "2":
		fmt.Println("second", os.Getpid())
		return
	}
	c := exec.Command(os.Args[0], "-test.run=^TestStartsAgain$")
	c.Env = append(os.Environ(), lifeEnv+"=1")
	out, err := c.CombinedOutput()
	pid := c.Process.Pid
	if text := string(out); err != nil || !strings.Contains(text, fmt.Sprintf("first %d\n", pid)) ||
		!strings.Contains(text, fmt.Sprintf("second %d\n", pid)) || !strings.Contains(text, "hung up") {
		t.Errorf("process %d: %v\n%s", pid, err, text)
	}
}

// TestAfter: a takeover by another agent is not a failure. With --stay the process then waits for
// the end of its context.
func TestAfter(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	if err := after(ctx, agent.ErrTakenOver, false); err != nil {
		t.Error(err)
	}
	stayed := make(chan error)
	go func() { stayed <- after(ctx, agent.ErrTakenOver, true) }()
	select {
	case <-stayed:
		t.Error("it did not stay")
	default:
	}
	stop()
	if err := <-stayed; err != nil {
		t.Error(err)
	}
	if err := after(ctx, fmt.Errorf("waiting: %w", context.Canceled), false); err != nil {
		t.Errorf("stopped while it waited: %v", err)
	}
	failed := errors.New("failed")
	if err := after(t.Context(), failed, true); err != failed {
		t.Error(err)
	}
}
