package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// How `antrail drops` names dropped packets.

// Named are packets that one port dropped for one reason.
type Named struct {
	Node   string `json:"node"`
	Port   string `json:"port"`
	Reason string `json:"reason"`
	Table  string `json:"table,omitempty"`
	// Packets counts those that the agent kept: of a flood it keeps some.
	Packets uint64 `json:"packets"`
}

// is says whether a reason matches: "ttl", or "entry/SpoofGuard" with its table.
func (n *Named) is(reason string) bool {
	name, table, inTable := strings.Cut(reason, "/")
	return n.Reason == name && (!inTable || n.Table == table)
}

// String is the reason, its table, and the port.
func (n Named) String() string {
	where := n.Reason
	if n.Table != "" {
		where += " in " + n.Table
	}
	return fmt.Sprintf("%s (%s)", where, n.Port)
}

// lossesFrom is the position of the first drop of an attack, by Node.
type lossesFrom map[string]uint64

// losses returns the position of the next drop of each Node.
func (s *stage) losses(ctx context.Context) (lossesFrom, error) {
	from := lossesFrom{}
	for _, n := range s.lab.Topology.Nodes {
		l, err := s.agent(n.Name).DroppedPackets(ctx, &api.DropQuery{Last: 1})
		if err != nil {
			return nil, err
		}
		from[n.Name] = l.Next
	}
	return from, nil
}

// The agent reports a drop a moment later. The limit counts polls, not time, because a busy
// machine may hold up a poll for longer.
const (
	looks     = 60
	lookEvery = 50 * time.Millisecond
)

// named are the drops since from that concern the attack. It polls until one has an
// expected reason, if the attack has any.
func (s *stage) named(ctx context.Context, from lossesFrom, a *attack) (all []Named, err error) {
	for range looks {
		if all, err = s.lossesSince(ctx, from); err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(n Named) bool { return !a.concerns(&n) })
		if len(a.names) == 0 || a.named(all) != nil {
			break
		}
		time.Sleep(lookEvery)
	}
	return all, nil
}

// concerns says whether a drop belongs to the attack. It does if the attacker's port
// dropped it, or if it has an expected reason at the expected port.
func (a *attack) concerns(n *Named) bool {
	return n.Port == attacker || a.port != "" && n.Port == a.port && slices.ContainsFunc(a.names, n.is)
}

// named is the first drop with an expected reason at the expected port.
func (a *attack) named(all []Named) *Named {
	port := attacker
	if a.port != "" {
		port = a.port
	}
	i := slices.IndexFunc(all, func(n Named) bool { return n.Port == port && slices.ContainsFunc(a.names, n.is) })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// lossesSince groups the drops of both Nodes.
func (s *stage) lossesSince(ctx context.Context, from lossesFrom) ([]Named, error) {
	var all []Named
	for _, node := range s.lab.Topology.Nodes {
		l, err := s.agent(node.Name).DroppedPackets(ctx, &api.DropQuery{Since: from[node.Name]})
		if err != nil {
			return nil, err
		}
		for i := range l.Packets {
			p := &l.Packets[i]
			n := Named{Node: node.Name, Port: p.Port.Name, Reason: p.Reason, Table: p.Table}
			at := slices.IndexFunc(all, func(x Named) bool { x.Packets = 0; return x == n })
			if at < 0 {
				at, all = len(all), append(all, n)
			}
			all[at].Packets += p.Packets
		}
	}
	return all, nil
}
