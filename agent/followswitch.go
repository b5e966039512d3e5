package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/control/ledger"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tables"
	"github.com/antrail/antrail/tables/uplink"
)

// The Node's side follows what is in the switch: Services' addresses, NodePorts
// and Egresses, and where the tunnel goes besides the peers.

// nodeUp makes the Node's side, and then lets packets pass between it and the
// switch, if they do not yet: before, what pods send would leave the Node by no rule of
// ours.
func (a *Agent) nodeUp(passing bool) (err error) {
	if a.config.OwnsCard() {
		if err := a.cardIsOpen(); err != nil {
			return err
		}
	}
	if a.host, err = host.Up(a.hostConfig()); err != nil {
		return err
	}
	if a.config.LoopsOut() {
		if err := host.CheckLoop(a.config.Gateway.Name, uplink.FirstSNATPort, uplink.LastSNATPort); err != nil {
			return fmt.Errorf("uplink.egress: %s: %w", a.config.Uplink.Egress, err)
		}
	}
	if !passing {
		err = a.addGateway()
	}
	if err == nil && a.live != nil {
		a.live.followNode()
	}
	return err
}

// cardIsOpen finds a port of the card or of the bridge that the switch does not have. Without one of
// them the Node would be offline when the addresses have moved.
func (a *Agent) cardIsOpen() error {
	for _, role := range []string{config.RoleUplink, config.RoleBridge} {
		if p := a.config.PortOf(role); !a.Pods.Has(p.Link, p.OFPort) {
			return fmt.Errorf("uplink.mode: %s: the switch does not have port %s; the log has the reason", a.config.Uplink.Mode, p.Name)
		}
	}
	return nil
}

// addGateway lets packets pass between Node and switch. What the Node has asked while
// nobody answered, it asks again.
func (a *Agent) addGateway() error {
	if err := a.opened.openPort(gatewaySpec(a.config)); err != nil {
		return err
	}
	return host.AskAgain(a.config.Gateway.Name)
}

// nodeStands says whether the Node's side is as an agent of this very configuration
// left it, by what it must have made last.
func (a *Agent) nodeStands() bool {
	return a.stands && a.live != nil && a.live.resumed() && host.TablesThere()
}

// virtual is how the Node's own rules reach Services, in each family.
var virtual = []host.Virtual{
	{Service: tables.VirtualServiceIP, NodePort: tables.VirtualNodePortIP, Reply: tables.VirtualReplyIP},
	{Service: tables.VirtualServiceIPv6, NodePort: tables.VirtualNodePortIPv6, Reply: tables.VirtualReplyIPv6},
}

// virtualOf are those of the families that the gateway has.
func virtualOf(g *config.Gateway) (all []host.Virtual) {
	for _, v := range virtual {
		for _, a := range g.Addresses {
			if a.Addr().Is4() == v.Service.Is4() {
				all = append(all, v)
			}
		}
	}
	return all
}

// setNode brings Node and tunnel to what the switch asks for.
func (a *Agent) setNode(want *ledger.NodeSide) error {
	if a.host == nil { // an external Node, of which nothing is asked
		return nil
	}
	return errors.Join(a.host.Set(sideOf(a.config, want)), a.setTunnel(want))
}

// setTunnel tells the tunnel, if there is one, what is to go through it.
func (a *Agent) setTunnel(want *ledger.NodeSide) error {
	if a.tunnel == nil {
		return nil
	}
	var here []netip.Addr
	for _, e := range want.Egresses {
		here = append(here, e.Addr)
	}
	if a.config.Kubernetes != nil {
		a.tunnel.SetPeers(nodesOf(want.Peers))
	}
	return a.tunnel.SetEgresses(here, want.FarEgresses)
}

// nodesOf are the other Nodes that the tunnel takes packets of, each range apart.
func nodesOf(peers []ledger.PeerPods) (nodes []underlay.Peer) {
	for _, p := range peers {
		if p.Address.IsValid() {
			nodes = append(nodes, underlay.Peer{Address: p.Address, Pods: []netip.Prefix{p.PodCIDR}})
		}
	}
	return nodes
}

// sideOf is what the switch asks of the Node, in the Node's words.
func sideOf(c *config.Config, want *ledger.NodeSide) *host.Side {
	s := &host.Side{
		ServiceCIDRs: want.ServiceCIDRs, External: want.External, NodePortAddresses: want.NodePortAddresses,
	}
	for _, p := range want.NodePorts {
		s.NodePorts = append(s.NodePorts, host.NodePort{Proto: uint8(p.Proto), Family: p.Family, Port: p.Port})
	}
	for _, e := range want.Egresses {
		s.Egresses = append(s.Egresses, host.Egress{Addr: e.Addr, Mark: e.Mark})
	}
	s.Pods, s.Multicast = want.Pods, want.Multicast
	if c.Kubernetes != nil {
		s.Peers = peersOf(c, want.Peers)
	}
	return s
}

// peersOf is what the Node has to know of the others: those of a family that its
// own pods do not have are nobody's here.
func peersOf(c *config.Config, want []ledger.PeerPods) (peers []host.Peer) {
	for _, p := range want {
		if slices.ContainsFunc(c.PodCIDRs, config.SameFamily(p.PodCIDR)) {
			peers = append(peers, host.Peer{PodCIDR: p.PodCIDR, Gateway: p.Gateway, NextHop: p.NextHop})
		}
	}
	return peers
}

// followNode makes the Node's side as the switch asks, if it is not. What fails
// is logged and tried again with the next call. It is called after each change of
// the manifests and from time to time, by two goroutines.
func (l *live) followNode() {
	l.nodeMu.Lock()
	defer l.nodeMu.Unlock()
	want := l.objects.NodeSide()
	if want == l.node {
		return
	}
	err := l.setNode(want)
	if err == nil {
		l.node, l.nodeError = want, nil
		return
	}
	if l.nodeError == nil || l.nodeError.Error() != err.Error() {
		l.log.Error("the Node's side is not as the objects ask; trying again", "error", err)
	}
	l.nodeError = err
}

const (
	// reconcilePause is how often at most the Node's side is put back: two programs that
	// want different things of a Node must not keep it busy.
	reconcilePause = time.Second
	// reconcileTables is how often nftables are asked whether anything changed.
	reconcileTables = 2 * time.Second
	// reconcileAll is how often all is looked at, whatever the kernel told.
	reconcileAll = time.Minute
)

// runHostReconcile puts back what other programs take away of the Node's side, until ctx
// ends.
func (a *Agent) runHostReconcile(ctx context.Context) error {
	changes, err := host.Watch(ctx)
	if err != nil {
		return fmt.Errorf("watching the Node's side: %w", err)
	}
	tables, all := time.NewTicker(reconcileTables), time.NewTicker(reconcileAll)
	defer tables.Stop()
	defer all.Stop()
	for {
		select {
		case _, more := <-changes:
			if !more {
				return lostWatch(ctx)
			}
		case <-all.C:
		case <-tables.C:
			if !a.host.TableMoved() {
				continue
			}
		}
		a.reconcileHost()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reconcilePause):
		}
	}
}

// lostWatch is nil when the watch ended with ctx.
func lostWatch(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the kernel tells no more of changes of the Node's side")
}

// reconcileHost puts back what is missing, and says so.
func (a *Agent) reconcileHost() {
	did, err := a.host.Reconcile()
	if len(did) > 0 {
		a.log.Warn("another program had changed the Node's side; it is as it was", "putBack", did)
	}
	if err != nil {
		a.log.Error("the Node's side is not as it should be; trying again", "error", err)
	}
}
