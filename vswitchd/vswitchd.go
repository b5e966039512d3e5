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

// Process is what the process is started with.
type Process struct {
	// Switch is the unix socket of the door.
	Switch string
	// RunDir is the directory of sockets and pid files, as Open vSwitch has them.
	RunDir string
	// Database is the file of the database, which says what bridge and ports there are.
	Database string
	// DatabaseServer is the unix socket of an ovsdb-server that has the database, in place of Database.
	// "" is none.
	DatabaseServer string
	// Bridge is the name of the bridge in place of a database, if it is not "". DatapathID is
	// its number in OpenFlow. If it is 0, it is made of the bridge's name.
	Bridge     string
	DatapathID uint64
	// TakeOver takes the place of a controller that is connected.
	TakeOver bool
	Release  string
	Log      slog.Handler
}

// retryTime is how long the process waits before it asks again for a switch that is away.
const retryTime = time.Second

// Run serves until ctx ends. The error says why it cannot: the switch does not answer or has
// another controller, or something is at one of the sockets.
func (p *Process) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := door.Dial(p.Switch)
	client.InvalidTTL = true
	if _, err := client.Info(ctx); err != nil {
		return err
	}
	c := controller{Process: p, client: client, log: slog.New(p.Log), begun: make(chan struct{}, 1)}
	c.bridges = &bridges{client: client, changes: &changes{Client: client}, runDir: p.RunDir, release: p.Release, log: c.log, ctx: ctx, ports: map[string]bridge.Port{}, receivers: receivers{client: client, log: c.log}}
	if err := c.bridges.followAddresses(ctx); err != nil {
		return fmt.Errorf("follow the addresses of the Node: %w", err)
	}
	over := make(chan struct{})
	go c.runControl(ctx, cancel, over)
	go c.bridges.changes.runForget(ctx)
	err := p.serve(ctx, &c)
	cancel(nil)
	<-over
	c.bridges.wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// serve serves once the process is the switch's controller.
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

// runControl stays the controller until ctx ends. If the switch goes away, it asks again: the
// next switch goes on with the entries of the one before.
func (c *controller) runControl(ctx context.Context, cancel context.CancelCauseFunc, over chan<- struct{}) {
	defer close(over)
	for {
		err := c.client.Control(ctx, "vswitchd", c.TakeOver, c.began, c.tell)
		if ctx.Err() != nil {
			return
		}
		if _, away := errors.AsType[*door.AwayError](err); !away {
			cancel(fmt.Errorf("the switch at %s: %w", c.Switch, err))
			return
		}
		c.log.Warn("the switch is away", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryTime):
		}
	}
}

// began tells serve that changes are allowed.
func (c *controller) began() {
	go c.bridges.runSwitchBegan(c.bridges.ctx)
	select {
	case c.begun <- struct{}{}:
	default:
	}
}

// tell hands packet-ins and expired entries to the controllers of the bridge.
func (c *controller) tell(e *door.Event) {
	s := c.bridges.server.Load()
	switch {
	case s == nil:
	case e.PacketIn != nil:
		s.PacketIn(e.PacketIn)
	case e.FlowRemoved != nil:
		s.FlowRemoved(e.FlowRemoved)
	}
}
