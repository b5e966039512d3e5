package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/tables"
)

// Whether objects describe this Node. Gateway, tunnel and addresses are fixed when the agent
// starts. Objects that differ belong to another Node.

// Fits returns nil if manifests describe this Node as its configuration does. The error is the
// first difference.
func (c *Config) Fits(n *cluster.NodeConfig) error {
	if n == nil {
		return fmt.Errorf("there is no NodeConfig/%s", c.NodeName)
	}
	if err := c.typeFits(n); err != nil || c.External() {
		return err
	}
	return cmp.Or(c.gatewayFits(n), c.encapFits(n), c.tunnelFits(n), c.portsFit(n))
}

// portsFit returns an error if another port has the name or number of a program's port.
func (c *Config) portsFit(n *cluster.NodeConfig) error {
	for _, p := range c.PortsBeside() {
		for _, o := range n.Ports {
			if o.OFPort == p.OFPort || o.Name == p.Name {
				return fmt.Errorf("port %s of NodeConfig/%s has number %d; in the configuration port %s of program %s has number %d", o.Name, c.NodeName, o.OFPort, p.Name, p.Program, p.OFPort)
			}
		}
	}
	return nil
}

func (c *Config) gatewayFits(n *cluster.NodeConfig) error {
	g := &c.Gateway
	switch {
	case n.Gateway.OFPort != g.OFPort || n.Gateway.Name != g.Name || MAC(n.Gateway.MAC) != g.MAC:
		return fmt.Errorf("the gateway of NodeConfig/%s is %s, port %d, %s; in the configuration it is %s, port %d, %s",
			c.NodeName, n.Gateway.Name, n.Gateway.OFPort, MAC(n.Gateway.MAC), g.Name, g.OFPort, g.MAC)
	case !sameAddresses(n.Gateway.IPs, g.Addresses):
		return fmt.Errorf("the gateway of NodeConfig/%s has %v; in the configuration it has %v", c.NodeName, n.Gateway.IPs, g.Addresses)
	}
	return nil
}

func (c *Config) encapFits(n *cluster.NodeConfig) error {
	switch {
	case n.Encap != c.Encap():
		return fmt.Errorf("the trafficEncapMode of NodeConfig/%s is %v; in the configuration it is %v", c.NodeName, n.Encap, c.Encap())
	case n.Encap == tables.Hybrid && !slices.Equal(n.TransportCIDRs, c.TransportCIDRs):
		return fmt.Errorf("the transportCIDRs of NodeConfig/%s are %v; in the configuration they are %v", c.NodeName, n.TransportCIDRs, c.TransportCIDRs)
	}
	return nil
}

func (c *Config) tunnelFits(n *cluster.NodeConfig) error {
	t := &c.Tunnel
	switch {
	case c.HasTunnel() && (n.Tunnel.OFPort != t.OFPort || n.Tunnel.Name != t.Name):
		return fmt.Errorf("the tunnel of NodeConfig/%s is %s, port %d; in the configuration it is %s, port %d",
			c.NodeName, n.Tunnel.Name, n.Tunnel.OFPort, t.Name, t.OFPort)
	case n.Tunnel.Type != "" && n.Tunnel.Type != t.Type:
		return fmt.Errorf("the tunnel of NodeConfig/%s is of type %s; in the configuration it is %s", c.NodeName, n.Tunnel.Type, t.Type)
	case len(n.TransportIPs) > 0 && !slices.Equal(n.TransportIPs, []netip.Addr{t.LocalAddress}):
		return fmt.Errorf("the transportIPs of NodeConfig/%s are %v; in the configuration tunnel.localAddress is %v", c.NodeName, n.TransportIPs, t.LocalAddress)
	}
	return nil
}

// sameAddresses says whether the addresses are those of the prefixes, in any order.
func sameAddresses(addrs []netip.Addr, prefixes []netip.Prefix) bool {
	return len(addrs) == len(prefixes) && !slices.ContainsFunc(prefixes, func(p netip.Prefix) bool {
		return !slices.Contains(addrs, p.Addr())
	})
}

// FitsNode returns nil if the Node object still has the podCIDRs that the agent started with,
// or none.
func (c *Config) FitsNode(n *cluster.Node) error {
	if c.Kubernetes == nil || n == nil {
		return nil
	}
	for i, p := range n.PodCIDRs {
		if i >= len(c.PodCIDRs) || c.PodCIDRs[i].Masked() != p {
			return fmt.Errorf("the Node's podCIDRs are %v, but the agent started with %v: restart the agent", n.PodCIDRs, c.PodCIDRs)
		}
	}
	return nil
}
