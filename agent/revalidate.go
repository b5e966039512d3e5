package agent

import (
	"context"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/tables"
)

// outcomeNames are labels of metrics; connections of another zone are not counted.
var outcomeNames = [door.Outcomes]string{door.Kept: "kept", door.Denied: "denied", door.Moved: "moved", door.Unknown: "unknown"}

// nodePorts are the ports of this Node that are no pod's.
func (c *Config) nodePorts() *door.NodePorts {
	n := &door.NodePorts{
		Gateway: c.Gateway.OFPort, Tunnel: c.Tunnel.OFPort, GatewayMAC: c.Gateway.MAC,
		FarMAC: tables.GlobalVirtualMAC, Mark: host.ProbeMark,
	}
	for _, g := range c.Gateway.Addresses {
		n.Addresses = append(n.Addresses, g.Addr())
	}
	return n
}

// nodePortsOf are the same as objects have them.
func nodePortsOf(s *control.Self) *door.NodePorts {
	return &door.NodePorts{
		Gateway: s.Gateway.No, Tunnel: s.Tunnel.No, GatewayMAC: s.Gateway.MAC,
		FarMAC: tables.GlobalVirtualMAC, Mark: host.ProbeMark, Addresses: s.GatewayAddresses,
	}
}

// runRevalidate has the restored connections revalidated, when the switch has what the
// objects say.
func (a *Agent) runRevalidate(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.live.synced:
	}
	start := time.Now()
	if a.ct.Revalidate(ctx, a.config.nodePorts()) != nil {
		return // ctx has ended
	}
	n := a.ct.Revalidated()
	removed := n[door.Denied] + n[door.Moved] + n[door.Unknown]
	if n[door.Kept]+removed == 0 {
		return
	}
	a.log.Info("restored connections revalidated against the entries of now", "examined", n[door.Kept]+removed,
		"removed", removed, "denied", n[door.Denied], "moved", n[door.Moved], "unknown", n[door.Unknown], "took", time.Since(start))
}
