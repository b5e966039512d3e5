package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/switchd"
)

// byHandEnv names the socket of a switch that this test binary is then.
const byHandEnv = "ANTRAIL_TEST_SWITCH"

// runByHand is such a switch, until it gets SIGTERM.
func runByHand(socket string) int {
	ctx, stop := ossignal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	p := &switchd.Process{Socket: socket, Dir: socket + ".d", Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	if err := p.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ended:", err)
		return exitFailed
	}
	return 0
}

// wantAnswer waits until a switch answers.
func wantAnswer(t *testing.T, socket string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := door.Dial(socket).Info(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// startByHand starts a switch that has privileges and that no agent has launched. The
// caller ends it.
func startByHand(t *testing.T, node *nstest.Namespace, socket string) *exec.Cmd {
	t.Helper()
	c := node.Command(os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), byHandEnv+"="+socket), os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() }) // if the test fails; one that has ended gets nothing
	return c
}

// TestSwitchByHand: an agent drives a switch that ran before. The gateway's device is made
// by the agent and opened by the switch, so both name one owner. When the agent has ended,
// the switch still has the ports.
func TestSwitchByHand(t *testing.T) {
	node, c := upgradedNode(t)
	c.Workers, c.Conntrack, c.KeepAwake, c.Offload, c.AFXDP, c.ConnectionCache = 0, config.Conntrack{}, "", "", config.AFXDP{}, nil // settings of the switch
	c.Switch = filepath.Join(t.TempDir(), "switch.sock")
	byHand := startByHand(t, node, c.Switch)
	wantAnswer(t, c.Switch)
	for range 2 { // the second agent finds what the first one made
		a := startProcess(t, node, c)
		wantReady(t, c)
		if ports := portsOpen(t, c); len(ports) == 0 {
			t.Error("the switch has no ports")
		}
		a.stop(t)
	}
	left := door.Dial(c.Switch).Ports()
	if len(left) == 0 {
		t.Error("the switch has no ports when its agent has ended")
	}
	node.Link(t, c.Gateway.Name) // fails the test if the device is gone
	byHand.Process.Signal(syscall.SIGTERM)
	if err := byHand.Wait(); err != nil {
		t.Error("the switch:", err)
	}
}
