package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/antrail/antrail/agent"
)

// accounted says that both switches know what became of every packet: their sums
// agree, and they are those that the ports' drivers have counted.
func accounted(ctx context.Context, w *world) (string, error) {
	packets, dropped := uint64(0), uint64(0)
	for _, n := range w.lab.Topology.Nodes {
		var err error
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			var sums *agent.SumsRecord
			if sums, err = w.sumsOf(ctx, n.Name); err == nil {
				packets, dropped = packets+sums.Total.Received, dropped+sums.Total.Dropped
				break
			}
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return fmt.Sprintf("%d packets came to the switches, %d were dropped, none is missing", packets, dropped), nil
}

// sumsOf is the sums of a Node's switch. The error says where they do not agree;
// with those of drivers they do when nothing moves.
func (w *world) sumsOf(ctx context.Context, node string) (*agent.SumsRecord, error) {
	r, err := w.lab.Sums(ctx, node)
	if err != nil {
		return nil, err
	}
	rows, err := w.ports(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, x := range r.Ports {
		p := rows[x.Name]
		if rx, tx := x.Received+x.KernelReceived+x.Joined, x.Sent+x.KernelSent+x.Parted; p.Rx.Packets != rx || p.Tx.Packets != tx {
			return nil, fmt.Errorf("port %s: %d packets received and %d sent by the switch's sums, %d and %d by its driver", x.Name, rx, tx, p.Rx.Packets, p.Tx.Packets)
		}
	}
	return r, nil
}
