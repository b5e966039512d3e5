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

// The Node's side follows the entries in the switch: Services' addresses, NodePorts, Egresses,
// and the tunnel's destinations.

// nodeUp makes the Node's side. Then it opens the gateway's port, unless packets pass already
// (passing). In the other order, pods' packets would leave the Node before our rules are there.
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

// cardIsOpen fails if the switch lacks the port of the card or of the bridge. Without either,
// the Node would be offline after its addresses move.
func (a *Agent) cardIsOpen() error {
	for _, role := range []string{config.RoleUplink, config.RoleBridge} {
		if p := a.config.PortOf(role); !a.Pods.Has(p.Link, p.OFPort) {
			return fmt.Errorf("uplink.mode: %s: the switch does not have port %s; the agent's log has the reason", a.config.Uplink.Mode, p.Name)
		}
	}
	return nil
}

// addGateway opens the gateway's port. Then the Node repeats the ARP and NDP requests that it
// sent while the port was closed.
func (a *Agent) addGateway() error {
	if err := a.opened.openPort(gatewaySpec(a.config)); err != nil {
		return err
	}
	return host.AskAgain(a.config.Gateway.Name)
}

// nodeStands says whether the Node's side is still as an agent of this configuration left it.
// It checks what that agent made last.
func (a *Agent) nodeStands() bool {
	return a.stands && a.live != nil && a.live.resumed() && host.TablesThere()
}

// virtual are the addresses by which the Node's rules reach Services, in each family.
var virtual = []host.Virtual{
	{Service: tables.VirtualServiceIP, NodePort: tables.VirtualNodePortIP, Reply: tables.VirtualReplyIP},
	{Service: tables.VirtualServiceIPv6, NodePort: tables.VirtualNodePortIPv6, Reply: tables.VirtualReplyIPv6},
}

// virtualOf are the virtual addresses of the families that the gateway has.
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

// setNode changes the Node and the tunnel to what the switch needs.
func (a *Agent) setNode(want *ledger.NodeSide) error {
	if a.host == nil { // an external Node has no Node's side
		return nil
	}
	return errors.Join(a.host.Set(sideOf(a.config, want)), a.setTunnel(want))
}

// setTunnel gives the tunnel, if there is one, its peers and Egresses.
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

// nodesOf are the tunnel's peers, one for each pod CIDR.
func nodesOf(peers []ledger.PeerPods) (nodes []underlay.Peer) {
	for _, p := range peers {
		if p.Address.IsValid() {
			nodes = append(nodes, underlay.Peer{Address: p.Address, Pods: []netip.Prefix{p.PodCIDR}})
		}
	}
	return nodes
}

// sideOf translates what the switch needs of the Node into package host's types.
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

// peersOf are the other Nodes' pod CIDRs, with their routes. It omits IP families that this
// Node's pods do not have.
func peersOf(c *config.Config, want []ledger.PeerPods) (peers []host.Peer) {
	for _, p := range want {
		if slices.ContainsFunc(c.PodCIDRs, config.SameFamily(p.PodCIDR)) {
			peers = append(peers, host.Peer{PodCIDR: p.PodCIDR, Gateway: p.Gateway, NextHop: p.NextHop})
		}
	}
	return peers
}

// followNode makes the Node's side as the switch needs it, if it differs. It logs a failure,
// and the next call tries again. Two goroutines call it: after each change of objects, and
// regularly.
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
	// reconcilePause is the least time between two reconciliations. If another program fights
	// for the Node's settings, the Node must not be busy with that.
	reconcilePause = time.Second
	// reconcileTables is how often the agent checks nftables for changes.
	reconcileTables = 2 * time.Second
	// reconcileAll is how often the agent checks everything, whatever the kernel reported.
	reconcileAll = time.Minute
)

// runHostReconcile restores what other programs change of the Node's side, until ctx ends.
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

// lostWatch is nil if the watch ended with ctx.
func lostWatch(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the kernel no longer reports changes of links, addresses and routes")
}

// reconcileHost restores missing parts of the Node's configuration, and logs them.
func (a *Agent) reconcileHost() {
	did, err := a.host.Reconcile()
	if len(did) > 0 {
		a.log.Warn("another program had changed the Node's side; the agent has put it back", "putBack", did)
	}
	if err != nil {
		a.log.Error("cannot put the Node's side back; trying again", "error", err)
	}
}
