package pipeline

import (
	"maps"
	"sync"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// The Node's nftables drop what comes from the gateway and is for a tunnel
// (host/guard.go). The switch has sent these packets by then, so they count as dropped by
// the gateway's port on their way out. The kernel keeps no packet, only the count.

// lossTunnel is the reason to lose such a packet, and tunnelDropped its text at the
// gateway's port.
var lossTunnel = LossReason{"port_packet_from_the_gateway_for_a_tunnel", "The Node's nftables dropped it: it left the switch by the gateway and was for a tunnel, as of a Pod that poses as a Node."}

const tunnelDropped = "packet from the gateway for a tunnel"

// tunnelDrops are what nftables have dropped so. The kernel counts from 0 again
// whenever the table is written.
type tunnelDrops struct {
	mu      sync.Mutex
	gateway string                 // the port's name
	count   func() (uint64, error) // of the kernel; nil if the Node has no such rule
	seen    uint64                 // the kernel's count at the last look
	sum     uint64
}

// Watch begins to count for the port of the gateway, by what the kernel has counted.
func (d *tunnelDrops) Watch(gateway string, count func() (uint64, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gateway, d.count = gateway, count
}

// addTo adds to the gateway's port, if it is there, what nftables have dropped behind it.
func (d *tunnelDrops) addTo(all []telemetry.PortStats) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range all {
		if s := &all[i]; d.count != nil && s.Name == d.gateway {
			d.look()
			if d.sum > 0 {
				s.Reasons = maps.Clone(s.Reasons)
				s.Reasons[tunnelDropped] = d.sum
				s.TxDropped += d.sum
			}
		}
	}
}

// look brings the sum up to date. A table that is away for a moment has counted
// nothing.
func (d *tunnelDrops) look() {
	now, err := d.count()
	if err != nil {
		return
	}
	if now < d.seen {
		d.seen = 0
	}
	d.sum, d.seen = d.sum+now-d.seen, now
}
