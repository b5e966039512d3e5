package demo

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// sumsTries is how often a switch is asked at least until its sums agree: on a machine
// that stands still for a while, patience may be over after the first time.
const sumsTries = 30

// accounted says that both switches know what became of every packet: their sums
// agree, and they are those that the ports' drivers have counted.
func accounted(ctx context.Context, w *world) (string, error) {
	packets, dropped := uint64(0), uint64(0)
	for _, n := range w.lab.Topology.Nodes {
		sums, err := w.sumsOf(ctx, n.Name)
		for end, try := time.Now().Add(patience), 1; err != nil && (try < sumsTries || time.Now().Before(end)); try++ {
			time.Sleep(10 * time.Millisecond)
			sums, err = w.sumsOf(ctx, n.Name)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", n.Name, err)
		}
		packets, dropped = packets+sums.Total.Received, dropped+sums.Total.Dropped
	}
	return fmt.Sprintf("%d packets came to the switches, %d were dropped, none is missing", packets, dropped), nil
}

// sumsOf is the sums of a Node's switch at rest. The error says where they do not
// agree, or that packets came or went meanwhile.
func (w *world) sumsOf(ctx context.Context, node string) (*api.SumsRecord, error) {
	before, err := w.counted(ctx, node)
	if err != nil {
		return nil, err
	}
	r, err := w.lab.Sums(ctx, node)
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
		sums := moved{x.Received + x.KernelReceived + x.Joined, x.Sent + x.KernelSent + x.Parted}
		if driver := after[x.Name]; driver != sums {
			return nil, fmt.Errorf("port %s: %v packets by the switch's sums, %v by its driver", x.Name, sums, driver)
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
