package vswitchd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/vswitchd/bridge"
	"github.com/antrail/antrail/vswitchd/daemon"
	"github.com/antrail/antrail/vswitchd/ovsdb/server"
)

// Process has the options of the process.
type Process struct {
	// Switch is the unix socket of the door.
	Switch string
	// RunDir is the directory of sockets and pid files, with the names that Open vSwitch uses.
	RunDir string
	// Database is the file of the database, whose rows configure the bridge and its ports.
	Database string
	// DatabaseServer is the unix socket of an ovsdb-server that has the database, in place of
	// Database; "" for none.
	DatabaseServer string
	// Bridge is the name of a bridge without a database; "" with one. DatapathID is its datapath ID;
	// if it is 0, the bridge's name gives one.
	Bridge     string
	DatapathID uint64
	// TakeOver replaces a connected controller.
	TakeOver bool
	Release  string
	Log      slog.Handler
}

// retryTime is the pause before the process connects again to a switch that does not answer.
const retryTime = time.Second

// Run serves until ctx ends. It returns an error if the switch does not answer or has another
// controller, and if one of the sockets cannot be opened.
func (p *Process) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := door.Dial(p.Switch)
	client.InvalidTTL = true
	if _, err := client.Info(ctx); err != nil {
		return err
	}
	c := controller{Process: p, client: client, log: slog.New(p.Log), begun: make(chan struct{}, 1)}
	c.bridges = &bridges{client: client, changes: &changeRecorder{Client: client}, runDir: p.RunDir, release: p.Release, log: c.log, ctx: ctx, ports: map[string]bridge.Port{}, receivers: receivers{client: client, log: c.log}}
	if err := c.bridges.followAddresses(ctx); err != nil {
		return fmt.Errorf("follow the addresses of the Node: %w", err)
	}
	over := make(chan struct{})
	go c.runControl(ctx, cancel, over)
	go c.bridges.changes.runForget(ctx)
	err := p.serve(ctx, &c)
	cancel(nil)
	<-over
	c.bridges.awaitDisconnected()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// serve serves the database or the bridge, once the process is the switch's controller.
func (p *Process) serve(ctx context.Context, c *controller) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.begun:
	}
	if p.Bridge != "" {
		b := bridge.Bridge{Name: p.Bridge, DatapathID: p.DatapathID, FailMode: failSecure}
		if b.DatapathID == 0 {
			b.DatapathID = datapathID(p.Bridge)
		}
		if err := c.bridges.AddBridge(b); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
	d, err := daemon.New(daemon.Config{
		Dir: p.RunDir, Database: p.Database, Server: p.DatabaseServer, Switch: c.bridges, Release: p.Release, Log: p.Log, Limits: server.DefaultLimits,
	})
	if err != nil {
		return err
	}
	d.Control.Register(c.bridges.commands()...)
	c.log.Info("serving the database", "rundir", p.RunDir, "database", p.Database, "switch", p.Switch)
	return d.Run(ctx)
}

// controller is the process as the switch's controller.
type controller struct {
	*Process
	client  *door.Client
	log     *slog.Logger
	bridges *bridges
	begun   chan struct{}
}

// runControl keeps the process the controller until ctx ends. If the switch does not answer any
// more, it connects again: the next process of the switch restores the entries.
func (c *controller) runControl(ctx context.Context, cancel context.CancelCauseFunc, over chan<- struct{}) {
	defer close(over)
	for {
		err := c.client.Control(ctx, "vswitchd", c.TakeOver, c.onControl, c.forwardEvent)
		if ctx.Err() != nil {
			return
		}
		if _, away := errors.AsType[*door.AwayError](err); !away {
			cancel(fmt.Errorf("the switch at %s: %w", c.Switch, err))
			return
		}
		c.log.Warn("the switch does not answer any more", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryTime):
		}
	}
}

// onControl signals to serve that the process is the controller, and restores a new switch process.
func (c *controller) onControl() {
	go c.bridges.runRestore(c.bridges.ctx)
	select {
	case c.begun <- struct{}{}:
	default:
	}
}

// forwardEvent passes packet-ins and expired entries to the controllers of the bridge.
func (c *controller) forwardEvent(e *door.Event) {
	s := c.bridges.server.Load()
	switch {
	case s == nil:
	case e.PacketIn != nil:
		s.PacketIn(e.PacketIn)
	case e.FlowRemoved != nil:
		s.FlowRemoved(e.FlowRemoved)
	}
}
