package local

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// Revalidation of connections. Policies decide on the first packet of a connection only. So a
// policy that changed while the switch was not running does not affect restored connections.
// Therefore a controller requests a revalidation once it has read its objects again. The switch
// composes the connection's first packet (firstpacket.go). The packet walks the current
// entries as the first of its connection (dataplane.TraceRequest.Stranger). Nothing is sent,
// counted or learned. The connection is removed if
//
//   1. no sender is permitted any more where the packet entered,
//   2. the packet is dropped, or
//   3. it leaves for another endpoint than the connection's.
//
// The next packet of a removed connection begins a new one, on which the policies decide. A
// packet's tuple equals a connection's original one only in the zone of the walk's first ct().
// Connections of other zones are removed together with those.

// counts is the number of connections by outcome.
type counts [door.Outcomes]atomic.Uint64

// Revalidation takes a quarter of a processor: a slice of connections, then a pause of three
// times as long.
const (
	slice = 256
	pause = 3
)

// serverShield is how long the servers of removed connections may not begin connections by their
// replies. TCP repeats unacknowledged data for that long (RFC 1122, section 4.2.3.5; Linux: 15
// retries).
const serverShield = 20 * time.Minute

// Revalidate implements door.Connections.
func (c *connections) Revalidate(ctx context.Context, n *door.NodePorts) error {
	s := c.sw
	r := revalidator{trace: s.Trace, first: NewFirstPackets(s.Flows(), n)}
	start, count, servers := time.Now(), 0, map[netip.AddrPort]bool{}
	for one := range s.table.Dump(conntrack.Filter{}) {
		outcome := r.outcome(&one)
		s.revalidated[outcome].Add(1)
		if outcome > door.OtherZone {
			s.shieldServer(&one, servers)
			s.removeConnection(&one)
		}
		if count++; count%slice == 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause * time.Since(start)):
			}
			start = time.Now()
		}
	}
	return nil
}

// Revalidated implements door.Connections.
func (c *connections) Revalidated() (n [door.Outcomes]uint64) {
	for i := range n {
		n[i] = c.sw.revalidated[i].Load()
	}
	return n
}

// shieldServer stops the server of a removed connection from beginning it in reverse by its
// replies. Other rules may allow a connection of the server's own. servers are already shielded.
func (s *Switch) shieldServer(c *conntrack.Conn, servers map[netip.AddrPort]bool) {
	to := c.After()
	at := netip.AddrPortFrom(to.Dst, to.DstPort)
	if to.Proto == packet.ProtoTCP && !servers[at] {
		servers[at] = true
		s.table.Shield(slices.Collect(maps.Keys(servers)), s.clock()+int64(serverShield))
	}
}

// removeConnection removes a connection, and those of the zones that its packets reach later.
func (s *Switch) removeConnection(c *conntrack.Conn) {
	s.table.RemoveConnection(c.Zone, &c.Orig)
	later := c.After()
	for _, z := range s.table.Zones() {
		if z.Zone != c.Zone {
			s.table.RemoveConnection(z.Zone, &later)
		}
	}
}

// revalidator walks the first packets of connections.
type revalidator struct {
	trace func(*telemetry.TraceRequest) (*telemetry.Trace, error)
	first *FirstPackets
}

// outcome is the outcome for a connection.
func (r *revalidator) outcome(c *conntrack.Conn) door.Outcome {
	if _, known := r.first.senders[c.InPort]; !known {
		return door.Unknown
	}
	t, err := r.trace(&telemetry.TraceRequest{
		InPort: c.InPort, Frame: r.first.Compose(c), Metadata: r.mark(c), Stranger: true,
		PickBucket: func(g *flow.Group, chosen int) int { return bucketOf(g, c, chosen) },
	})
	switch {
	case err != nil:
		return door.Unknown
	case zoneOf(t) != nil && *zoneOf(t) != c.Zone:
		return door.OtherZone
	}
	switch t.Verdict.Reason {
	case telemetry.DropByEntry, telemetry.DropTableMiss, telemetry.DropNoOutput:
		return door.Denied
	case telemetry.NotDropped:
		return outcomeOfWalk(t, c)
	}
	return door.Kept
}

// mark is the packet mark of the Node's own packets to its pods, which policies allow.
// Masqueraded packets have the gateway's address, too, but had no mark. A connection does not
// show the difference. To keep a connection too many is the smaller error.
func (r *revalidator) mark(c *conntrack.Conn) (m flow.Match) {
	if n := r.first.node; c.InPort == n.Gateway && slices.Contains(n.Addresses, c.Orig.Src) {
		m.AddExact(flow.PktMark, flow.Value{Lo: uint64(n.Mark)})
	}
	return m
}

// outcomeOfWalk is the outcome for a connection whose packet was not dropped. A packet that goes only
// to the controller is rejected there.
func outcomeOfWalk(t *telemetry.Trace, c *conntrack.Conn) door.Outcome {
	switch {
	case t.Verdict.PacketIn && len(t.Verdict.Outputs) == 0:
		return door.Denied
	case !leavesForEndpoint(t, c):
		return door.Moved
	}
	return door.Kept
}

// zoneOf is the zone of the first ct() of a walk; nil if there is none.
func zoneOf(t *telemetry.Trace) *uint16 {
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Kind == telemetry.StepCT {
			return &s.CT.Zone
		}
	}
	return nil
}

// bucketOf is the bucket of a group with a connection's endpoint, or the one that the walk has
// chosen.
func bucketOf(g *flow.Group, c *conntrack.Conn, chosen int) int {
	for i := range g.Buckets {
		if to, ok := EndpointOf(&g.Buckets[i]); ok && to == netip.AddrPortFrom(c.Reply.Src, c.Reply.SrcPort) {
			return i
		}
	}
	return chosen
}

// leavesForEndpoint reports whether a packet leaves for the connection's endpoint.
func leavesForEndpoint(t *telemetry.Trace, c *conntrack.Conn) bool {
	to := c.After()
	dst, _, _ := addressFields(to.Dst)
	want := map[flow.FieldID]flow.Value{dst: flow.ValueOfAddr(to.Dst)}
	if ports, ok := portFields[to.Proto]; ok {
		want[ports[1]] = flow.Value{Lo: uint64(to.DstPort)}
	}
	return slices.ContainsFunc(t.Steps, func(s telemetry.Step) bool {
		if s.Kind != telemetry.StepOutput {
			return false
		}
		for id, v := range want {
			if flow.FieldByID(id).Get(&s.After) != v {
				return false
			}
		}
		return true
	})
}
