package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/antrail/antrail/vswitchd/bridge"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/server"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
	"github.com/antrail/antrail/vswitchd/rundir"
	"github.com/antrail/antrail/vswitchd/unixctl"
)

// front is the OVSDB half of the Open vSwitch front: a database, its server, a reconciler over
// a switch in memory, and control sockets.
type front struct {
	t   *testing.T
	dir string
	db  *store.Database
	sw  *memorySwitch
	// remove removes pid files.
	remove []func() error
	// stop ends the front before the test does.
	stop func()
}

// silent logs nothing.
var silent = slog.New(slog.DiscardHandler)

// startFront runs a front in a directory of its own until the test ends.
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
	db, _, err := store.Open(filepath.Join(dir, "conf.db"), schema.OpenVSwitch())
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(silent, server.DefaultLimits, db)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{t: t, dir: dir, db: db, sw: newMemorySwitch()}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	run := func(what string, serve func(context.Context) error) {
		all.Go(func() {
			if err := serve(ctx); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	ln := listen(t, filepath.Join(dir, "db.sock"))
	run("database", func(ctx context.Context) error { return s.Serve(ctx, ln) })
	run("reconciler", bridge.New(db, f.sw, silent).Run)
	f.control(run, "ovsdb-server", s.Usage)
	f.control(run, "ovs-vswitchd", func() map[string]int { return map[string]int{"ports": len(f.sw.names())} })
	f.stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		for _, end := range append(f.remove, db.Close) {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(f.stop)
	return f
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	ln, err := rundir.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// control runs a daemon's control socket and writes its pid file.
func (f *front) control(run func(string, func(context.Context) error), daemon string, usage func() map[string]int) {
	f.t.Helper()
	c := unixctl.New(silent, daemon+" (antrail) 1.2.3")
	coverage := unixctl.NewCoverage()
	coverage.Counter("bridge_reconfigure").Add(3)
	c.Register(unixctl.MemoryShow(usage))
	c.Register(coverage.Commands()...)
	c.Register(unixctl.NewVlog(nil, "bridge", "jsonrpc").Commands()...)
	ln := listen(f.t, rundir.ControlSocket(f.dir, daemon))
	remove, err := rundir.PIDFile(f.dir, daemon)
	if err != nil {
		f.t.Fatal(err)
	}
	f.remove = append(f.remove, remove)
	run(daemon, func(ctx context.Context) error { return c.Serve(ctx, ln) })
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
