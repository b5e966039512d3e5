package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrail/antrail/agent/api"
)

// PacketCounters are the packet counters of a Node's switch since its agent started. If
// they do not add up, the error says where.
func (l *Lab) PacketCounters(ctx context.Context, node string) (*api.PacketCountersRecord, error) {
	var r api.PacketCountersRecord
	if err := api.NewClient(l.Socket(node)).JSON(ctx, "/sums", nil, &r); err != nil {
		return nil, err
	}
	if r.Fault != "" {
		return nil, errors.New(r.Fault)
	}
	return &r, nil
}

// Accounted is an error if a switch's packet counters do not add up. It names the Node.
func (l *Lab) Accounted(ctx context.Context) error {
	for _, n := range l.Topology.Nodes {
		if _, err := l.PacketCounters(ctx, n.Name); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}
