// Package vswitchd makes a switch look like Open vSwitch to its tools: it is the controller of
// a switch in another process, and serves OpenFlow on the socket where ovs-ofctl and
// controllers look for a bridge.
//
//	vswitchd.go  the process
package vswitchd

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/vswitchd/ofserver"
)

// Process is what the process is started with.
type Process struct {
	// Switch is the unix socket of the door.
	Switch string
	// Bridge is the bridge's name, and RunDir the directory of BRIDGE.mgmt.
	Bridge, RunDir string
	// DatapathID is the bridge's number in OpenFlow. If it is 0, it is made of the MAC
	// address of the Node's own port, or of the bridge's name.
	DatapathID uint64
	// TakeOver takes the place of a controller that is connected.
	TakeOver bool
	Release  string
	Log      *slog.Logger
}

// retryTime is how long the process waits before it asks again for a switch that is away.
const retryTime = time.Second

// Run serves until ctx ends. The error says why it cannot: the switch does not answer or has
// another controller, or something is at the bridge's socket.
func (p *Process) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := door.Dial(p.Switch)
	if _, err := client.Info(ctx); err != nil {
		return err
	}
	c := controller{Process: p, client: client, server: make(chan *ofserver.Server, 1), begun: make(chan struct{}, 1)}
	over := make(chan struct{})
	go c.runControl(ctx, cancel, over)
	err := p.serve(ctx, &c)
	cancel(nil)
	<-over
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// serve serves OpenFlow once the process is the switch's controller.
func (p *Process) serve(ctx context.Context, c *controller) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.begun:
	}
	s, err := ofserver.New(ofserver.Config{
		Switch: c.client, Bridge: p.Bridge, DatapathID: p.datapathID(c.client), Release: p.Release, Log: p.Log,
	})
	if err != nil {
		return fmt.Errorf("the switch at %s: %w", p.Switch, err)
	}
	c.server <- s
	ln, err := p.listen()
	if err != nil {
		return err
	}
	p.Log.Info("serving OpenFlow", "bridge", p.Bridge, "socket", p.socket(), "switch", p.Switch)
	return s.Serve(ctx, ln)
}

// socket is where ovs-ofctl looks for the bridge.
func (p *Process) socket() string { return filepath.Join(p.RunDir, p.Bridge+".mgmt") }

func (p *Process) listen() (net.Listener, error) {
	ln, err := switchd.Listen(p.socket())
	if err != nil {
		return nil, fmt.Errorf("the bridge's socket: %w", err)
	}
	return ln, nil
}

// datapathID is the bridge's number.
func (p *Process) datapathID(c *door.Client) uint64 {
	if p.DatapathID != 0 {
		return p.DatapathID
	}
	for _, port := range c.Ports() {
		if port.No == flow.PortLocal {
			return flow.ValueOfMAC(port.MAC[:]).Lo
		}
	}
	h := fnv.New64a()
	h.Write([]byte(p.Bridge))
	const local, address = 0x020000000000, 0xffffffffffff // a MAC address that nobody has bought
	return h.Sum64()&address | local
}

// controller is the process as the switch's controller.
type controller struct {
	*Process
	client *door.Client
	server chan *ofserver.Server // once there is one
	serves *ofserver.Server
	begun  chan struct{}
}

// runControl stays the controller until ctx ends. If the switch goes away, it asks again: the
// next switch goes on with the entries of the one before.
func (c *controller) runControl(ctx context.Context, cancel context.CancelCauseFunc, over chan<- struct{}) {
	defer close(over)
	for {
		err := c.client.Control(ctx, "vswitchd "+c.Bridge, c.TakeOver, c.began, c.tell)
		if ctx.Err() != nil {
			return
		}
		if _, away := errors.AsType[*door.AwayError](err); !away {
			cancel(fmt.Errorf("the switch at %s: %w", c.Switch, err))
			return
		}
		c.Log.Warn("the switch is away", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryTime):
		}
	}
}

// began tells serve that changes are allowed.
func (c *controller) began() {
	select {
	case c.begun <- struct{}{}:
	default:
	}
}

// tell hands packet-ins to the controllers of the bridge.
func (c *controller) tell(e *door.Event) {
	select {
	case c.serves = <-c.server:
	default:
	}
	if e.PacketIn != nil && c.serves != nil {
		c.serves.PacketIn(e.PacketIn)
	}
}
