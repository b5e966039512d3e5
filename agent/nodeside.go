package agent

import (
	"errors"
	"net/netip"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/tables"
)

// The Node's side follows what is in the switch: Services' addresses, NodePorts
// and Egresses, and where the tunnel goes besides the peers.

// virtual is how the Node's own rules reach Services, in each family.
var virtual = []host.Virtual{
	{Service: tables.VirtualServiceIP, NodePort: tables.VirtualNodePortIP},
	{Service: tables.VirtualServiceIPv6, NodePort: tables.VirtualNodePortIPv6},
}

// virtual are those of the families that the gateway has.
func (g *Gateway) virtual() (all []host.Virtual) {
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
func (a *Agent) setNode(want *control.NodeSide) error {
	s := &host.Side{
		ServiceCIDRs: want.ServiceCIDRs, External: want.External, NodePortAddresses: want.NodePortAddresses,
	}
	for _, p := range want.NodePorts {
		s.NodePorts = append(s.NodePorts, host.NodePort{Proto: uint8(p.Proto), Family: p.Family, Port: p.Port})
	}
	var here []netip.Addr
	for _, e := range want.Egresses {
		s.Egresses = append(s.Egresses, host.Egress{Addr: e.Addr, Mark: e.Mark})
		here = append(here, e.Addr)
	}
	return errors.Join(a.host.Set(s), a.tunnel.SetEgresses(here, want.FarEgresses))
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
