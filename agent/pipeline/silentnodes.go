package pipeline

import (
	"net/netip"
)

// Nodes that do not answer ARP or NDP although packets go there. The kernel drops these packets
// without a report. The agent checks once a second. It has the tunnel count the packets as
// dropped, and names the Nodes in answers about drops.

// SilentNodes are the silent addresses at the last check.
func (p *Pipeline) SilentNodes() []netip.Addr {
	if all := p.Silent.Load(); all != nil {
		return *all
	}
	return nil
}

// silentAt finds a silent address: dst, the packet's destination, or any address of the Node if
// dst is not valid.
func (p *Pipeline) silentAt(dst netip.Addr, node string) (netip.Addr, bool) {
	for _, n := range p.SilentNodes() {
		if n == dst || !dst.IsValid() && p.NodeName(n) == node {
			return n, true
		}
	}
	return netip.Addr{}, false
}

// NodeName is the name of the Node with an address, or the address.
func (p *Pipeline) NodeName(a netip.Addr) string {
	if p.Objects != nil {
		if name := p.Objects.NodeAt(a); name != "" {
			return name
		}
	}
	return a.String()
}
