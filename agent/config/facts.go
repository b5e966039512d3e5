package config

import (
	"net/netip"
	"slices"
)

// NodeFacts is what the API knows of a Node.
type NodeFacts struct {
	Node         string         `json:"node"`
	PodCIDRs     []netip.Prefix `json:"podCIDRs"`
	Addresses    []netip.Addr   `json:"addresses"`
	ServiceCIDRs []netip.Prefix `json:"serviceCIDRs,omitempty"`
}

// nodePortAddresses are the Node's addresses and 127.0.0.1, as in Antrea. IPv6 has
// no route_localnet, so ::1 cannot serve NodePorts.
func (n *NodeFacts) nodePortAddresses() []netip.Addr {
	all := slices.Clone(n.Addresses)
	if slices.ContainsFunc(all, netip.Addr.Is4) {
		all = append(all, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	return all
}

// Learn fills in what the API knows, and checks the whole configuration.
func (c *Config) Learn(n *NodeFacts) error {
	if len(c.PodCIDRs) == 0 {
		c.PodCIDRs = n.PodCIDRs
	}
	if len(c.Gateway.Addresses) == 0 {
		for _, p := range c.PodCIDRs {
			c.Gateway.Addresses = append(c.Gateway.Addresses, netip.PrefixFrom(p.Masked().Addr().Next(), p.Bits()))
		}
	}
	if !c.Tunnel.LocalAddress.IsValid() {
		c.Tunnel.LocalAddress = n.Addresses[0]
	}
	c.learned = true
	c.setDefaults()
	return c.check()
}
