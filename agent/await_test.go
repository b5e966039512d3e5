package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/switchd"
)

// Switches in processes that no agent starts: this test binary is one when awaitEnv names a
// socket. Agents launch them if awaitEnv names the same socket.

const awaitEnv = "ANTRAIL_TEST_AWAIT"

// runAwait is such a process.
func runAwait(socket string) int {
	ctx, stop := ossignal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := switchd.Await(ctx, socket, os.Getenv("POD_NAME"), "", slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "ended:", err)
		return exitFailed
	}
	return 0
}

// twoContainers is a Node with an agent and its switch in containers of their own.
type twoContainers struct {
	node    *nstest.Namespace
	c       *config.Config
	program string // which the switch's user can execute
}

func newTwoContainers(t *testing.T) *twoContainers {
	t.Helper()
	node, c := upgradedNode(t)
	w := &twoContainers{node: node, c: c}
	dir := filepath.Dir(c.Socket)
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // the directory of all of the test's
		t.Fatal(err)
	}
	c.Await, w.program = filepath.Join(dir, "launch.sock"), filepath.Join(dir, "switch")
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(w.program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return w
}

// startSwitch starts a switch's process of a pod, as a container has it.
func (w *twoContainers) startSwitch(t *testing.T, pod string) *process {
	t.Helper()
	uid := strconv.Itoa(switchd.ConfinedUID)
	cmd := w.node.Command("setpriv", "--reuid="+uid, "--regid="+uid, "--clear-groups", "--bounding-set=-all", "--no-new-privs",
		"env", "POD_NAME="+pod, awaitEnv+"="+w.c.Await, w.program)
	return startLogged(t, cmd, "a switch of pod "+pod, func() error { return nil })
}

// startAgent starts a pod's agent, with the capabilities of its container.
func (w *twoContainers) startAgent(t *testing.T, pod string, capabilities []string, args ...string) *process {
	t.Helper()
	bound := "--bounding-set=" + strings.Join(append([]string{"-all"}, capabilities...), ",")
	return startBy(t, w.node.Command("setpriv", append([]string{bound, "env", "POD_NAME=" + pod, awaitEnv + "=" + w.c.Await, os.Args[0]}, args...)...), w.c)
}

// wantConfinedProcess checks what the kernel says of a switch's process.
func wantConfinedProcess(t *testing.T, pid int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	status := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{
		"CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2", fmt.Sprintf("Uid: %d ", switchd.ConfinedUID),
	} {
		if !strings.Contains(status, want) {
			t.Errorf("process %d: %s, want %s", pid, status, want)
		}
	}
}

// TestTwoContainers: the switch is in a process that the agent of its pod launches. The next
// pod's switch takes over from it, and a process of another pod is not launched.
func TestTwoContainers(t *testing.T) {
	w := newTwoContainers(t)
	all := deployedCapabilities(t)
	first := w.startSwitch(t, "antrail-1")
	old := w.startAgent(t, "antrail-1", all)
	wantReady(t, w.c)
	pid, had := switchPID(t, w.c), forwardingOf(t, w.c)
	wantConfinedProcess(t, pid)
	if pid != first.Process.Pid {
		t.Errorf("process %d is the switch, not %d", pid, first.Process.Pid)
	}

	other := w.startSwitch(t, "antrail-0")
	next := w.startAgent(t, "antrail-2", all, takeOverArg)
	old.wantExit(t, exitTakenOver)
	next.wantSaid(t, "the previous agent's switch is replaced")
	second := w.startSwitch(t, "antrail-2") // it may come later than its agent
	wantReady(t, w.c)
	first.wantSaid(t, "another switch has taken over")
	second.wantSaid(t, "taken over from the previous switch")
	if now := switchPID(t, w.c); now != second.Process.Pid {
		t.Errorf("process %d is the switch, not %d", now, second.Process.Pid)
	}
	had.wantStill(t, w.c)
	for _, waits := range []*process{first, other} { // who would start them again is not to
		waits.stop(t)
	}

	second.Process.Kill() // its container is started again, and so is the agent
	<-second.ended
	third := w.startSwitch(t, "antrail-2")
	next.wantExit(t, exitAgain)
	last := w.startAgent(t, "antrail-2", all)
	wantReady(t, w.c)
	had.wantStill(t, w.c)
	third.Process.Signal(syscall.SIGTERM) // a pod's containers are stopped at the same time
	last.Process.Signal(syscall.SIGTERM)
	third.wantExit(t, 0)
	last.wantExit(t, 0)
	wantNothingLeft(t, w.node, w.c)
	if _, err := os.Stat(w.c.Await); !os.IsNotExist(err) {
		t.Errorf("the socket of processes that wait: %v", err)
	}
}
