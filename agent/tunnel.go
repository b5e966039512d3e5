package agent

import (
	"fmt"
	"net/netip"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/ports/underlay"
	"github.com/antrail/antrail/tables"
)

// outerOf describes outer packets for the Node's rules.
func outerOf(c *config.Config) host.Outer {
	if !c.HasTunnel() {
		return host.Outer{}
	}
	return host.Outer{Proto: c.Tunnel.Kind().Proto(), Port: c.Tunnel.Kind().Port()}
}

// nodesPort is the port to other Nodes.
type nodesPort interface {
	SetPeers(nodes []underlay.Peer)
	SetSilent(nodes []netip.Addr)
	SetEgresses(here, far []netip.Addr) error
	PathMTU(node netip.Addr) int
}

// openTunnel has the switch open the port to the other Nodes, if the configuration has one.
func (a *Agent) openTunnel() error {
	if !a.config.HasTunnel() {
		return nil
	}
	t := &a.config.Tunnel
	var peers []underlay.Peer
	for _, peer := range a.config.Peers {
		peers = append(peers, underlay.Peer{Address: peer.Address, Pods: peer.PodCIDRs})
	}
	if a.config.Kubernetes != nil {
		peers = nodesOf(a.live.objects.NodeSide().Peers)
	}
	err := a.opened.openPort(&door.PortSpec{
		No: t.OFPort, Name: t.Name, Driver: door.DriverTunnel, Security: l2.PortSecurity{MACs: []l2.MAC{tables.GlobalVirtualMAC}},
		Tunnel: &door.TunnelSpec{
			Kind: t.Type, Local: t.LocalAddress, MTU: a.config.Gateway.MTU, Peers: doorPeers(peers), Pods: a.config.PodCIDRs,
			AnyNetwork: a.config.Flows != "", Driver: t.Driver, Uplink: t.Uplink,
		},
	})
	if err != nil {
		return fmt.Errorf("tunnel: %w", err)
	}
	a.tunnel = remoteTunnel{a.Remote, t.Type, a.log}
	a.Pipeline.TunnelDrops.Watch(a.config.Gateway.Name, host.GuardDrops)
	a.tunnel.SetPeers(peers) // an existing port has the previous peers
	return nil
}
