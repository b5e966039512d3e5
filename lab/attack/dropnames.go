package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antrail/antrail/agent/api"
)

// How `antrail drops` names what was lost.

// Named is packets that were lost by one port for one reason.
type Named struct {
	Node   string `json:"node"`
	Port   string `json:"port"`
	Reason string `json:"reason"`
	Table  string `json:"table,omitempty"`
	// Packets counts those that the agent kept: of a flood it keeps some.
	Packets uint64 `json:"packets"`
}

// is says whether a reason is meant: "ttl", or "entry/SpoofGuard" with its table.
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

// lossesFrom is where the losses of an attack begin, by Node.
type lossesFrom map[string]uint64

// losses marks where the next ones begin.
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

// A loss is told a moment after it happened. Looks are counted, not time: a
// process that the machine held up for longer has not looked.
const (
	looks     = 60
	lookEvery = 50 * time.Millisecond
)

// named are the losses since then of the ports that an attack uses. It waits
// until one of the reasons is among them, if there are any.
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

// concerns says whether a loss is one of the attack: the attacker's port lost it,
// or it has one of the expected reasons at the expected port.
func (a *attack) concerns(n *Named) bool {
	return n.Port == attacker || a.port != "" && n.Port == a.port && slices.ContainsFunc(a.names, n.is)
}

// named is the first loss with an expected reason at the expected port.
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

// lossesSince groups the losses of both Nodes.
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
