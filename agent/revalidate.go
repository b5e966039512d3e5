package agent

import (
	"context"
	"time"

	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/host"
	"github.com/antrail/antrail/tables"
)

// nodePorts are the ports of this Node that belong to no pod.
func nodePorts(c *config.Config) *door.NodePorts {
	n := &door.NodePorts{
		Gateway: c.Gateway.OFPort, Tunnel: c.Tunnel.OFPort, GatewayMAC: c.Gateway.MAC,
		FarMAC: tables.GlobalVirtualMAC, Mark: host.ProbeMark,
	}
	for _, g := range c.Gateway.Addresses {
		n.Addresses = append(n.Addresses, g.Addr())
	}
	return n
}

// runRevalidate revalidates the restored connections, once the switch has the entries of all
// objects.
func (a *Agent) runRevalidate(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-a.live.synced:
	}
	start := time.Now()
	if a.Connections.Revalidate(ctx, nodePorts(a.config)) != nil {
		return // ctx has ended
	}
	n := a.Connections.Revalidated()
	removed := n[door.Denied] + n[door.Moved] + n[door.Unknown]
	if n[door.Kept]+removed == 0 {
		return
	}
	a.log.Info("restored connections revalidated against the entries of now", "examined", n[door.Kept]+removed,
		"removed", removed, "denied", n[door.Denied], "moved", n[door.Moved], "unknown", n[door.Unknown], "took", time.Since(start))
}
