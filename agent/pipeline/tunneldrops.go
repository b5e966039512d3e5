package pipeline

import (
	"maps"
	"sync"

	"github.com/antrail/antrail/dataplane/telemetry"
)

// The Node's nftables drop packets that come from the gateway and are for a tunnel
// (host/guard.go). The switch has sent them already, so they count as dropped on the way out at
// the gateway's port. The kernel keeps only their number.

// lossTunnel is the reason of such a drop, and tunnelDropped its text at the gateway's port.
var lossTunnel = LossReason{"port_packet_from_the_gateway_for_a_tunnel", "The Node's nftables dropped it: it left the switch by the gateway and was for a tunnel, as if a Pod posed as a Node."}

const tunnelDropped = "packet from the gateway for a tunnel"

// tunnelDrops counts what nftables dropped so. The kernel counts from 0 again when the table is
// rewritten.
type tunnelDrops struct {
	mu      sync.Mutex
	gateway string                 // the port's name
	count   func() (uint64, error) // reads the kernel's counter; nil if the Node has no such rule
	seen    uint64                 // the kernel's counter at the last read
	sum     uint64
}

// Watch starts to count for the gateway's port. count reads the kernel's counter.
func (d *tunnelDrops) Watch(gateway string, count func() (uint64, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gateway, d.count = gateway, count
}

// read is how many packets nftables have dropped so.
func (d *tunnelDrops) read() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count != nil {
		d.readCount()
	}
	return d.sum
}

// addTo adds to the gateway's port, if it is in all, what nftables have dropped behind it.
func (d *tunnelDrops) addTo(all []telemetry.PortStats) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range all {
		if s := &all[i]; d.count != nil && s.Name == d.gateway {
			d.readCount()
			if d.sum > 0 {
				s.Reasons = maps.Clone(s.Reasons)
				s.Reasons[tunnelDropped] = d.sum
				s.TxDropped += d.sum
			}
		}
	}
}

// readCount updates the sum. If the table is missing for a moment, the sum stays.
func (d *tunnelDrops) readCount() {
	now, err := d.count()
	if err != nil {
		return
	}
	if now < d.seen {
		d.seen = 0
	}
	d.sum, d.seen = d.sum+now-d.seen, now
}
