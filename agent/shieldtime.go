package agent

import (
	"net/netip"
	"time"

	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/control/cluster"
)

// shieldTime is how long, after a start without connections, endpoints of Services open no
// connections themselves. By its end, every client that waits for an answer has sent again.
const shieldTime = 10 * time.Second

// shield keeps endpoints of Services from recreating lost connections in the wrong direction
// (conntrack's Table.Shield). The zero value does nothing.
type shield struct {
	*pipeline.Pipeline
	until int64
}

// newShield starts the shield's time, unless the table has connections: then none were lost.
func newShield(p *pipeline.Pipeline) shield {
	if p.Connections.Stats().Entries > 0 {
		return shield{}
	}
	return shield{p, p.Clock() + int64(shieldTime)}
}

// update shields the endpoints of a snapshot.
func (s shield) update(c *cluster.Cluster) { s.endpoints(tcpEndpoints(c)) }

// endpoints shields addresses and ports.
func (s shield) endpoints(all []netip.AddrPort) {
	if s.Pipeline != nil && s.Clock() < s.until {
		s.Connections.Shield(all, s.until)
	}
}

// tcpEndpoints are the addresses and TCP ports of Services' endpoints.
func tcpEndpoints(c *cluster.Cluster) (all []netip.AddrPort) {
	for _, slice := range c.EndpointSlices {
		for _, p := range slice.Ports {
			if slice.Service.Name == "" || p.Protocol != cluster.TCP || p.Number == 0 {
				continue
			}
			for _, e := range slice.Endpoints {
				for _, a := range e.Addresses {
					all = append(all, netip.AddrPortFrom(a, p.Number))
				}
			}
		}
	}
	return all
}
