package pipeline

import (
	"net/netip"
)

// Nodes that do not answer ARP or NDP, though packets go there: the kernel drops those
// and tells nobody. The agent looks once a second, has the tunnel count them as dropped,
// and names the Nodes to who asks for what was dropped, or why.

// SilentNodes are those that were silent at the last look.
func (p *Pipeline) SilentNodes() []netip.Addr {
	if all := p.Silent.Load(); all != nil {
		return *all
	}
	return nil
}

// silentAt is an address that is silent: dst, where packets are sent to, or, where that
// is not valid, one of a Node's own.
func (p *Pipeline) silentAt(dst netip.Addr, node string) (netip.Addr, bool) {
	for _, n := range p.SilentNodes() {
		if n == dst || !dst.IsValid() && p.NodeName(n) == node {
			return n, true
		}
	}
	return netip.Addr{}, false
}

// NodeName is the Node with an address, or the address.
func (p *Pipeline) NodeName(a netip.Addr) string {
	if p.Objects != nil {
		if name := p.Objects.NodeAt(a); name != "" {
			return name
		}
	}
	return a.String()
}
