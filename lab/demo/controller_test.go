package demo

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/reaptest"
	"github.com/antrail/antrail/lab"
)

// TestSecondController: while an agent drives a switch, another controller is refused, and
// so is what it would change. The agent that is killed is followed by the next one.
func TestSecondController(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a lab needs root")
	}
	l, err := lab.Up(t.Context(), lab.Options{Binary: antrail, StateDir: reaptest.LabDir(t), Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	c := door.Dial(l.SwitchSocket("node-a"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = c.Control(ctx, "me", false, func() {}, func(*door.Event) {})
	if err == nil || !strings.Contains(err.Error(), `controller "antrail agent" is connected`) {
		t.Errorf("a second controller: %v", err)
	}
	if err := c.RemovePort(1); err == nil {
		t.Error("somebody else removed a port")
	}
	if err := l.KillAgent("node-a"); err != nil {
		t.Fatal(err)
	}
	entries := len(c.Flows())
	if info, err := c.Info(ctx); err != nil || info.Controller != "" || entries == 0 {
		t.Errorf("after a kill: %+v, %v, %d entries", info, err, entries)
	}
	if err := l.RestartAgent(ctx, "node-a", antrail); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Info(ctx); err != nil || info.Controller != "antrail agent" || len(c.Flows()) != entries {
		t.Errorf("the next agent: %+v, %v, %d entries and not %d", info, err, len(c.Flows()), entries)
	}
	if pid := switchPID(t, l, "node-a"); !strings.Contains(commandLine(t, pid), "switch") {
		t.Errorf("the switch is process %d", pid)
	}
}

// commandLine is what a process was started with.
func commandLine(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		t.Error(err)
	}
	return string(b)
}
