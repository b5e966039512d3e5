package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/podports"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/ports/tap"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/switchd"
)

// The switch is a separate process, and the agent is its controller:
//
//   1. The agent launches the switch (ownswitch.go), or waits for the switch of Config.Switch.
//      It becomes the controller before it changes anything.
//   2. Installed entries stay. The agent's first bundle is the difference between them and the
//      entries that the objects ask for.
//   3. An agent that is killed or replaced removes nothing: the switch keeps its entries and
//      ports, and the Node its routes and rules. The same holds if the switch is not its own.
//   4. If the switch ends, the agent starts again. The next switch reads its entries from its
//      files.

// controllerName is the name that the switch shows for the agent.
const controllerName = "antrail agent"

// switchRetry is the pause between tries to reach the switch.
const switchRetry = 20 * time.Millisecond

// awaitSwitch waits until the switch answers, and makes the agent its controller until ctx
// ends. gone receives the reason when the agent stops being the controller.
func (a *Agent) awaitSwitch(ctx context.Context) (c *door.Client, gone <-chan error, err error) {
	var ended <-chan error
	if a.config.OwnsSwitch() {
		if ended, err = a.beginSwitch(ctx); err != nil {
			return nil, nil, err
		}
	}
	c = door.Dial(a.config.SwitchSocket())
	if err := a.untilAnswer(ctx, c, ended); err != nil {
		return nil, nil, err
	}
	for end := time.Now().Add(leaveTime); ; time.Sleep(switchRetry) {
		begun, over := make(chan struct{}), make(chan error, 1)
		go func() { over <- a.runController(ctx, c, begun) }()
		select {
		case <-begun:
			return c, over, nil
		case err := <-over:
			var other *door.ConflictError
			if !errors.As(err, &other) || time.Now().After(end) {
				return nil, nil, fmt.Errorf("the switch at %s: %w", c.Socket(), err)
			}
		}
	}
}

// untilAnswer waits until the switch answers. It fails if the switch ends first (ended).
// Meanwhile the agent's API says that the agent waits.
func (a *Agent) untilAnswer(ctx context.Context, c *door.Client, ended <-chan error) error {
	waits, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() { a.runWaiting(waits, c) })
	defer waiting.Wait()
	defer cancel()
	for told := ""; ; {
		info, err := c.Info(ctx)
		if err == nil {
			a.log.Info("the switch answers", "switch", c.Socket(), "release", info.Release, "entries", info.Names != nil)
			return nil
		}
		var away *door.AwayError
		if !errors.As(err, &away) {
			return err
		}
		if told != err.Error() && ended == nil {
			told = err.Error()
			a.log.Warn("waiting for the switch", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case how := <-ended:
			return fmt.Errorf("the switch has ended (%w); the log has the reason", how)
		case <-time.After(switchRetry):
		}
	}
}

// leaveTime is how long the switch may take to notice that the previous agent has ended.
const leaveTime = 2 * time.Second

// runController is the controller of the switch until ctx ends or the switch goes away.
func (a *Agent) runController(ctx context.Context, c *door.Client, begun chan<- struct{}) error {
	return c.Control(ctx, controllerName, a.takeOver, func() { close(begun) }, func(e *door.Event) {
		<-a.told // until Packets is complete
		if e.PacketIn != nil {
			a.Packets.Receive(e.PacketIn)
		}
	})
}

// runSwitch ends when another controller takes over, or when the switch ends. In the second
// case, an agent that owns its switch first launches the next one.
func (a *Agent) runSwitch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.gone:
		var over *door.TakenOverError
		if errors.As(err, &over) {
			return errors.Join(ErrTakenOver, err)
		}
		if a.config.OwnsSwitch() {
			err = errors.Join(err, a.revive(ctx))
		}
		if ctx.Err() != nil { // agent and switch stop together
			return nil
		}
		return errors.Join(ErrAgain, err)
	}
}

// podSwitch opens the pods' ports in the switch.
type podSwitch struct {
	*switchPorts
	config *config.Config
	// beside: another CNI has made the links (mode networkPolicyOnly).
	beside bool
}

// open opens a port with its security.
func (s podSwitch) open(p config.Port) (podports.Opened, error) {
	spec := &door.PortSpec{No: p.OFPort, Name: p.Name, Driver: p.Driver, Link: p.Link, Security: podports.Security(&p, s.config.PodVLANTags)}
	if s.beside {
		if err := host.NotBridged(p.Link); err != nil {
			return nil, err
		}
	}
	if p.Driver == config.DriverTap {
		spec.Tap = &door.TapSpec{MTU: s.config.Gateway.MTU, Marks: !p.NoReturn, Aside: true, Owner: s.owner}
		if p.Role == config.RoleUplink && s.config.SharesCard() || p.Role == config.RoleBridge && s.config.OwnsCard() {
			if err := s.likeCard(spec.Tap, p.Role); err != nil {
				return nil, err
			}
		}
	}
	return &remotePort{s.sw, p.OFPort}, s.openPort(spec)
}

// likeCard gives a tap the MTU of the card. The tap of the bridge also gets the card's MAC.
func (s podSwitch) likeCard(t *door.TapSpec, role string) error {
	name := s.config.Uplink.Card
	if role == config.RoleBridge {
		name = s.config.PortOf(config.RoleUplink).Link
	}
	card, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("the card %s: %w", name, err)
	}
	t.MTU, t.Marks = card.MTU, false
	if role == config.RoleBridge { // the other end is the Node
		t.MAC, t.Aside = card.HardwareAddr.String(), false
	}
	return nil
}

// remotePort is a port of the switch's process.
type remotePort struct {
	sw *door.Client
	no uint32
}

// Info is the switch's record of the port; zero if the switch does not have it.
func (p *remotePort) Info() ports.Info {
	for _, s := range p.sw.Ports() {
		if s.No == p.no {
			return s.Info
		}
	}
	return ports.Info{}
}

// remoteTunnel is the port to other Nodes, in the switch's process.
type remoteTunnel struct {
	*door.Client
	kind string
	log  *slog.Logger
}

// SetPeers implements nodesPort, as the methods below do.
func (t remoteTunnel) SetPeers(nodes []underlay.Peer) { t.warn(t.SetTunnelPeers(doorPeers(nodes))) }

// SetSilent sets the Nodes that do not answer.
func (t remoteTunnel) SetSilent(nodes []netip.Addr) { t.warn(t.SetTunnelSilent(nodes)) }

// SetEgresses sets the Egress addresses of this Node (here) and of other Nodes (far).
func (t remoteTunnel) SetEgresses(here, far []netip.Addr) error {
	return switchd.SetEgresses(t.Client, t.kind, &door.TunnelEgresses{Here: here, Far: far})
}

// PathMTU is the inner MTU on the way to a Node; 0 if unknown.
func (t remoteTunnel) PathMTU(node netip.Addr) int {
	n, err := t.TunnelPathMTU(node)
	t.warn(err)
	return n
}

func (t remoteTunnel) warn(err error) {
	if err != nil {
		t.log.Warn("the tunnel did not take a change", "error", err)
	}
}

func doorPeers(nodes []underlay.Peer) (all []door.TunnelPeer) {
	for _, n := range nodes {
		all = append(all, door.TunnelPeer{Address: n.Address, Pods: n.Pods})
	}
	return all
}

// gatewaySpec is the gateway's port.
func gatewaySpec(c *config.Config) *door.PortSpec {
	g := &c.Gateway
	return &door.PortSpec{
		No: g.OFPort, Name: g.Name, Link: g.Name, Driver: config.DriverTap, Security: l2.PortSecurity{MACs: []l2.MAC{g.MAC}},
		Tap: &door.TapSpec{MAC: net.HardwareAddr(g.MAC[:]).String(), MTU: g.MTU, Marks: true, Owner: ownerOf(c)},
	}
}

// makeGateway makes the gateway's device for the switch, unless the switch has it. The device
// stays when this process closes it.
func (a *Agent) makeGateway() error {
	failed := a.BeginAsking()
	all := a.Switch.Ports()
	if err := failed(); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	for _, p := range all {
		if p.No == a.config.Gateway.OFPort && p.Name == a.config.Gateway.Name && p.Up {
			a.stands = true
			return nil
		}
	}
	g := &a.config.Gateway
	t, err := tap.Open(tap.Options{Name: g.Name, MAC: g.MAC, MTU: g.MTU, Marks: true, Owner: ownerOf(a.config)})
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	t.Keep(true)
	return t.Close()
}

// removeStalePorts closes ports of the switch that have no owner: their pods went while no
// agent ran.
func (a *Agent) removeStalePorts() {
	there := a.Switch.Ports() // read before Wanted, so that a port opened meanwhile is not stale
	wanted := map[uint32]bool{a.config.Gateway.OFPort: !a.config.External()}
	if a.config.HasTunnel() {
		wanted[a.config.Tunnel.OFPort] = true
	}
	for _, p := range a.Pods.Wanted() {
		wanted[p.OFPort] = true
	}
	for _, p := range there {
		if wanted[p.No] {
			continue
		}
		a.log.Info("port removed: no pod or configuration has it", "port", p.Name, "ofPort", p.No)
		if err := a.opened.RemovePort(p.No); err != nil {
			a.log.Warn("port removed, with an error", "port", p.Name, "error", err)
		}
	}
}

// runStalePorts removes stale ports when the switch has the entries of all objects.
func (a *Agent) runStalePorts(ctx context.Context) {
	if a.live != nil {
		select {
		case <-ctx.Done():
			return
		case <-a.live.synced:
		}
	}
	a.removeStalePorts()
}
