package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/vswitchd/bridgetest"
	"github.com/antrail/antrail/vswitchd/ovsdb/server"
)

// front is a daemon over a switch in memory.
type front struct {
	t   *testing.T
	dir string
	d   *Daemon
	sw  *bridgetest.Switch
	// stop ends the daemon before the test does.
	stop func()
}

// startFront runs a daemon in a directory of its own until the test ends.
func startFront(t *testing.T) *front {
	dir, err := os.MkdirTemp("", "front") // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return startFrontIn(t, dir)
}

func startFrontIn(t *testing.T, dir string) *front {
	t.Helper()
	f := &front{t: t, dir: dir, sw: bridgetest.New()}
	var err error
	f.d, err = New(config(dir, f.sw))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.d.Run(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(f.stop)
	return f
}

func config(dir string, sw *bridgetest.Switch) Config {
	return Config{
		Dir: dir, Database: filepath.Join(dir, "conf.db"), Switch: sw, Release: "1.2.3",
		Log: slog.DiscardHandler, Limits: server.DefaultLimits,
	}
}

// tool runs a program of Open vSwitch on a directory and returns all it printed and its exit
// code.
func tool(t *testing.T, dir, program string, args ...string) (text string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir, "OVS_SYSCONFDIR="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", program, err)
	}
	return strings.ReplaceAll(out.String(), dir, "RUNDIR"), cmd.ProcessState.ExitCode()
}
