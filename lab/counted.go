package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/antrail/antrail/agent/api"
)

// PacketCounters is what became of all packets of a Node's switch, since its agent was started.
// The error says where the sums do not agree.
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

// Accounted says which switch does not know what became of its packets.
func (l *Lab) Accounted(ctx context.Context) error {
	for _, n := range l.Topology.Nodes {
		if _, err := l.PacketCounters(ctx, n.Name); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}
