package demo

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// countersTries is the least number of polls of a switch's counters. If the machine stalls,
// waitAtMost may be over after the first poll.
const countersTries = 30

// accounted checks that both switches account for every packet: their counters add up, and
// match those of the ports' drivers.
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

// countersOf are the counters of a Node's switch at rest. The error says where they do not
// add up, or that packets passed meanwhile.
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
		return nil, fmt.Errorf("packets still pass: counts by port were %v, then %v", before, after)
	}
	for _, x := range r.Ports {
		counters := moved{x.Received + x.KernelReceived + x.Joined, x.Sent + x.KernelSent + x.Split}
		if driver := after[x.Name]; driver != counters {
			return nil, fmt.Errorf("port %s: %v packets by the switch's counters, %v by its driver's", x.Name, counters, driver)
		}
	}
	return r, nil
}

// moved are a port's packets in both directions.
type moved struct{ received, sent uint64 }

func (m moved) String() string { return fmt.Sprintf("%d received and %d sent", m.received, m.sent) }

// counted are the drivers' counters of a Node's ports.
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
