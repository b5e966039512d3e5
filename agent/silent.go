package agent

import (
	"net/netip"
	"slices"

	"github.com/antrail/antrail/host"
)

// Nodes that do not answer ARP or NDP, though packets go there: the kernel drops those
// and tells nobody. The agent looks once a second, has the tunnel count them as lost,
// and names the Nodes to who asks for what was dropped, or why.

// lookAtNodes finds the Nodes that are silent now. It is called by one goroutine.
func (a *Agent) lookAtNodes(s *host.Silence) {
	now, err := s.Nodes(a.otherNodes, a.config.Gateway.Name)
	if err != nil {
		return // what was known holds until the next look
	}
	before := a.silentNodes()
	if slices.Equal(now, before) {
		return
	}
	a.silent.Store(&now)
	if a.tunnel != nil {
		a.tunnel.SetSilent(now)
	}
	for _, n := range now {
		if !slices.Contains(before, n) {
			a.log.Warn("a Node does not answer ARP or NDP: packets for it are lost", "node", a.nodeName(n), "address", n)
		}
	}
	for _, n := range before {
		if !slices.Contains(now, n) {
			a.log.Info("a Node answers again", "node", a.nodeName(n), "address", n)
		}
	}
}

// otherNodes are the addresses that packets for pods of other Nodes go to.
func (a *Agent) otherNodes() (all []netip.Addr) {
	for _, p := range a.config.Peers {
		all = append(append(all, p.Address), p.NodeIPs...)
	}
	if a.config.Kubernetes != nil {
		for _, p := range a.objects.NodeSide().Peers {
			all = append(all, p.Address, p.NextHop)
		}
	}
	all = slices.DeleteFunc(all, func(n netip.Addr) bool { return !n.IsValid() })
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// silentNodes are those that were silent at the last look.
func (p *pipeline) silentNodes() []netip.Addr {
	if all := p.silent.Load(); all != nil {
		return *all
	}
	return nil
}

// silentAt is an address that is silent: dst, where packets are sent to, or, where that
// is not valid, one of a Node's own.
func (p *pipeline) silentAt(dst netip.Addr, node string) (netip.Addr, bool) {
	for _, n := range p.silentNodes() {
		if n == dst || !dst.IsValid() && p.nodeName(n) == node {
			return n, true
		}
	}
	return netip.Addr{}, false
}

// nodeName is the Node with an address, or the address.
func (p *pipeline) nodeName(a netip.Addr) string {
	if p.objects != nil {
		if name := p.objects.NodeAt(a); name != "" {
			return name
		}
	}
	return a.String()
}
