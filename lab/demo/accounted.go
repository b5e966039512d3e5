package demo

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// countersTries is how often a switch is asked at least until its counters agree: on a machine
// that stands still for a while, the time may be over after the first try.
const countersTries = 30

// accounted says that both switches know what became of every packet: their counters
// agree, and they are those that the ports' drivers have counted.
func accounted(ctx context.Context, w *world) (string, error) {
	packets, dropped := uint64(0), uint64(0)
	for _, n := range w.lab.Topology.Nodes {
		counters, err := w.countersOf(ctx, n.Name)
		for end, try := time.Now().Add(waitAtMost), 1; err != nil && (try < countersTries || time.Now().Before(end)); try++ {
			time.Sleep(10 * time.Millisecond)
			counters, err = w.countersOf(ctx, n.Name)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", n.Name, err)
		}
		packets, dropped = packets+counters.Total.Received, dropped+counters.Total.Dropped
	}
	return fmt.Sprintf("%d packets came to the switches, %d were dropped, none is missing", packets, dropped), nil
}

// countersOf is the sums of a Node's switch at rest. The error says where they do not
// agree, or that packets came or went meanwhile.
func (w *world) countersOf(ctx context.Context, node string) (*api.PacketCountersRecord, error) {
	before, err := w.counted(ctx, node)
	if err != nil {
		return nil, err
	}
	r, err := w.lab.PacketCounters(ctx, node)
	if err != nil {
		return nil, err
	}
	after, err := w.counted(ctx, node)
	if err != nil {
		return nil, err
	}
	if !maps.Equal(before, after) {
		return nil, fmt.Errorf("it does not come to rest: packets by port were %v, and then %v", before, after)
	}
	for _, x := range r.Ports {
		counters := moved{x.Received + x.KernelReceived + x.Joined, x.Sent + x.KernelSent + x.Split}
		if driver := after[x.Name]; driver != counters {
			return nil, fmt.Errorf("port %s: %v packets by the switch's sums, %v by its driver", x.Name, counters, driver)
		}
	}
	return r, nil
}

// moved is packets that came by a port and that left by it.
type moved struct{ received, sent uint64 }

func (m moved) String() string { return fmt.Sprintf("%d received and %d sent", m.received, m.sent) }

// counted is what the drivers of a Node's ports have counted.
func (w *world) counted(ctx context.Context, node string) (map[string]moved, error) {
	rows, err := w.ports(ctx, node)
	if err != nil {
		return nil, err
	}
	all := map[string]moved{}
	for name, p := range rows {
		all[name] = moved{p.Rx.Packets, p.Tx.Packets}
	}
	return all, nil
}
