// Package daemon replaces Open vSwitch's two daemons, ovsdb-server and ovs-vswitchd, by one process.
// It has the database's socket, the reconciler of its rows, the control sockets and the pid files.
//
// With Config.Server, another process has the database, and this one only replaces ovs-vswitchd.
//
// The caller provides the switch (bridge.Switch), and more commands of ovs-appctl. A switch that
// serves OpenFlow opens its sockets, BRIDGE.mgmt, when a bridge is added.
//
// Goroutines: one for each socket, one for the reconciler, one for the counters' samples.
package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/vswitchd/bridge"
	"github.com/antrail/antrail/vswitchd/ovsdb/replica"
	"github.com/antrail/antrail/vswitchd/ovsdb/schema"
	"github.com/antrail/antrail/vswitchd/ovsdb/server"
	"github.com/antrail/antrail/vswitchd/ovsdb/store"
	"github.com/antrail/antrail/vswitchd/rundir"
	"github.com/antrail/antrail/vswitchd/unixctl"
)

// Config has the options of a Daemon.
type Config struct {
	// Dir is the directory of sockets and pid files.
	Dir string
	// Database is the file of the database. It may be a file of ovsdb-server.
	Database string
	// Server is the unix socket of an ovsdb-server that has the database, in place of Database; ""
	// for none.
	Server string
	// Switch is the switch that the rows configure.
	Switch bridge.Switch
	// Release is the version of the program, such as "1.2.3".
	Release string
	// Log writes the records that the levels of vlog/set allow.
	Log slog.Handler
	// Limits bound the database's clients.
	Limits server.Limits
	// ReopenLog opens the log file again for vlog/reopen; nil if there is none.
	ReopenLog func() error
}

// The names by which tools find the daemons.
const serverName, switchName = "ovsdb-server", "ovs-vswitchd"

// Daemon has the daemons' open files and sockets.
type Daemon struct {
	// Control has the commands of ovs-vswitchd. The caller may register more.
	Control *unixctl.Server
	// Reconciler configures the switch.
	Reconciler *bridge.Reconciler
	// Cut is the number of bytes that were cut off the database's file, because a crash had left an
	// incomplete transaction.
	Cut int64

	log     *slog.Logger
	db      *store.Database
	clients *server.Server   // nil with replica
	replica *replica.Replica // of another server's database; nil for the database's file
	sockets []socket
	undo    []func() error // the functions that Close calls, last first
	stop    chan struct{}
	cleanup atomic.Bool
}

// socket is a listener with the function that serves it.
type socket struct {
	net.Listener
	serve func(context.Context, net.Listener) error
}

// New opens the database, locks the pid files and opens the sockets. It returns an error if one of
// the daemons runs already.
func New(c Config) (*Daemon, error) {
	d := &Daemon{stop: make(chan struct{}, 1)}
	if err := d.open(c); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Daemon) open(c Config) error {
	levels := unixctl.NewVlog(c.ReopenLog, "bridge", "daemon", "jsonrpc", "storage", "unixctl")
	module := func(name string) *slog.Logger { return slog.New(levels.Handler(name, unixctl.Console, c.Log)) }
	d.log = module("daemon")
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	if err := d.openDatabase(c, module); err != nil {
		return err
	}
	d.Reconciler = bridge.New(d.db, c.Switch, module("bridge"))
	d.Control = unixctl.New(module("unixctl"), switchName+" (antrail) "+c.Release)
	d.Control.Register(unixctl.Exit(true, d.exit))
	d.Control.Register(unixctl.Coverage()...)
	d.Control.Register(levels.Commands()...)
	if err := d.openControl(c.Dir, switchName, d.Control); err != nil || d.replica != nil {
		return err
	}
	database := unixctl.New(module("unixctl"), serverName+" (antrail) "+c.Release)
	database.Register(unixctl.Exit(false, d.exit), unixctl.MemoryShow(d.clients.Usage))
	database.Register(unixctl.Coverage()...)
	database.Register(d.databaseCommands()...)
	database.Register(levels.Commands()...)
	if err := d.openControl(c.Dir, serverName, database); err != nil {
		return err
	}
	return d.listen(filepath.Join(c.Dir, "db.sock"), d.clients.Serve)
}

// openDatabase opens the database's file, or copies the rows of Config.Server. It logs a repair of
// the file.
func (d *Daemon) openDatabase(c Config, module func(string) *slog.Logger) (err error) {
	if c.Server != "" {
		d.replica, err = replica.Open(context.Background(), c.Server, "ovs_vswitchd", schema.OpenVSwitch(), module("storage"))
		d.undo = append(d.undo, d.replica.Close)
		d.db = d.replica.DB
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Database), 0o755); err != nil {
		return err
	}
	if d.db, d.Cut, err = store.Open(c.Database, schema.OpenVSwitch()); err != nil {
		return err
	}
	d.undo = append(d.undo, d.db.Close)
	d.db.Log = module("storage")
	if d.Cut > 0 {
		d.db.Log.Warn("a crash has left an incomplete transaction, which was cut off", "file", c.Database, "bytes", d.Cut)
	}
	d.clients, err = server.New(module("jsonrpc"), c.Limits, d.db)
	return err
}

// openControl opens the pid file and the control socket of a daemon.
func (d *Daemon) openControl(dir, name string, commands *unixctl.Server) error {
	remove, err := rundir.PIDFile(dir, name)
	if err != nil {
		return err
	}
	d.undo = append(d.undo, remove)
	if err := rundir.RemoveStale(dir, name); err != nil {
		return err
	}
	return d.listen(rundir.ControlSocket(dir, name), commands.Serve)
}

func (d *Daemon) listen(path string, serve func(context.Context, net.Listener) error) error {
	ln, err := rundir.Listen(path)
	if err != nil {
		return err
	}
	d.sockets = append(d.sockets, socket{ln, serve})
	d.undo = append(d.undo, func() error { return errors.Join(ignoreClosed(ln.Close()), os.Remove(path)) })
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Close closes everything that New has opened. Run calls it.
func (d *Daemon) Close() (err error) {
	for len(d.undo) > 0 {
		last := len(d.undo) - 1
		err = errors.Join(err, d.undo[last]())
		d.undo = d.undo[:last]
	}
	return err
}

// exit ends Run, which removes the bridges first if cleanup is set. It may be called again.
func (d *Daemon) exit(cleanup bool) {
	if cleanup {
		d.cleanup.Store(true)
	}
	select {
	case d.stop <- struct{}{}:
	default: // it is ending already
	}
}

// Run serves until ctx ends, a client sends the command exit, or a part fails. The bridges stay,
// unless the command has --cleanup.
func (d *Daemon) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var parts sync.WaitGroup
	failures := make(chan error, len(d.sockets)+2)
	run := func(serve func(context.Context) error) {
		parts.Go(func() { failures <- runPart(ctx, serve) })
	}
	run(d.Reconciler.Run)
	if d.replica != nil {
		run(d.replica.Run)
	}
	for _, s := range d.sockets {
		run(func(ctx context.Context) error { return s.serve(ctx, s.Listener) })
	}
	var err error
	select {
	case <-ctx.Done():
	case <-d.stop:
	case err = <-failures:
	}
	cancel()
	parts.Wait()
	if d.cleanup.Load() {
		err = errors.Join(err, d.Reconciler.RemoveAll())
	}
	return errors.Join(err, d.Close())
}

// runPart serves until ctx ends. It returns an error if serve returns earlier.
func runPart(ctx context.Context, serve func(context.Context) error) error {
	err := serve(ctx)
	if err == nil && ctx.Err() == nil {
		return errors.New("a part of the daemon has ended without an error")
	}
	return err
}
