package multicast

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/tables"
)

// The intervals of queries to Pods and of reports to other Nodes (RFC 3376, section 8). A
// member that misses three of them is removed.
const (
	queryInterval  = 125 * time.Second
	answerWithin   = 10 * time.Second
	reportInterval = 30 * time.Second
	podTimeout     = 3*queryInterval + answerWithin
	nodeTimeout    = 3 * reportInterval
	// groupsPerReport fit into a packet of 1280 bytes.
	groupsPerReport = 150
)

// Cluster is what the querier needs of the objects. *control.Reconciler implements it.
type Cluster interface {
	MulticastNode() (gateway netip.Addr, mac [6]byte, ok bool)
	PodAt(port uint32) (cluster.Name, bool)
	HasPod(cluster.Name) bool
	SetMulticast([]control.MulticastGroup) error
	CountReport(netip.Addr, control.MulticastPod, int)
	// JoinedGroups are the groups that policies let at least one Pod join.
	JoinedGroups() []netip.Addr
	// MulticastGroups are the groups of the previous agent, with their members.
	MulticastGroups() []control.MulticastGroup
}

// Routes lead groups from the outside to this Node's pods. *host.MulticastRoutes implements it.
// After Close the routes stay for the next agent; Remove deletes them.
type Routes interface {
	Set([]netip.Addr) error
	Remove() error
	Close()
}

// Switch sends the querier's messages.
type Switch interface {
	Names() *flow.Names
	PacketOut(inPort uint32, actions []flow.Action, frame []byte) error
}

// Querier keeps the members of multicast groups. Receive may be called by any goroutine.
type Querier struct {
	objects Cluster
	sw      Switch
	clock   func() time.Time
	log     *slog.Logger

	mu      sync.Mutex
	members members
	changed chan struct{} // there are changes that the switch does not have

	// Of the goroutine of Run.
	queried, told time.Time // last query and report
	reported      []netip.Addr
	routes        Routes
	lacks         string // the last logged fault of routes
}

// New makes a querier with the previous agent's members, as if they had just reported.
func New(objects Cluster, sw Switch, routes Routes, clock func() time.Time, log *slog.Logger) *Querier {
	q := &Querier{
		objects: objects, sw: sw, routes: routes, clock: clock, log: log, members: newMembers(), changed: make(chan struct{}, 1),
	}
	for _, g := range objects.MulticastGroups() {
		for _, pod := range g.Pods {
			q.members.joinPod(g.Addr, pod.Name, report{clock(), pod.Report})
		}
		for _, node := range g.Nodes {
			q.members.joinNode(g.Addr, node, clock())
		}
	}
	return q
}

// Receive handles a report that an entry sent to the controller. It ignores other packets.
func (q *Querier) Receive(pi *telemetry.PacketIn) {
	l := packet.ParseLayers(pi.Frame)
	if len(pi.UserData) == 0 || pi.UserData[0] != tables.PacketInIGMP || l.Proto != packet.ProtoIGMP || l.L4 == 0 {
		return
	}
	m := packet.IGMP(pi.Frame[l.L4:l.End])
	if !m.Valid() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if node := nodeOf(&pi.Key); node.IsValid() {
		q.note(m, func(a netip.Addr) bool { return q.members.joinNode(a, node, q.clock()) },
			func(a netip.Addr) bool { return q.members.leaveNode(a, node) })
	} else if pod, ok := q.objects.PodAt(pi.InPort); ok {
		join := func(a netip.Addr) bool {
			q.objects.CountReport(a, control.MulticastPod{Name: pod, Report: m.Type()}, len(pi.Frame))
			return q.members.joinPod(a, pod, report{q.clock(), m.Type()})
		}
		q.note(m, join, func(a netip.Addr) bool { return q.members.leavePod(a, pod) })
	}
}

// note joins and leaves the groups of a report, and wakes Run if that changes members.
func (q *Querier) note(m packet.IGMP, join, leave func(netip.Addr) bool) {
	changes := false
	for x := range m.Memberships() {
		if x.Joins {
			changes = join(x.Group) || changes
		} else {
			changes = leave(x.Group) || changes
		}
	}
	if changes {
		q.wake()
	}
}

func (q *Querier) wake() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// nodeOf is the other end of the tunnel that a packet came from; not valid if it came from
// a Pod.
func nodeOf(k *flow.Key) netip.Addr {
	if v := flow.FieldByID(flow.TunSrc).Get(k); !v.IsZero() {
		return netip.AddrFrom4([4]byte{byte(v.Lo >> 24), byte(v.Lo >> 16), byte(v.Lo >> 8), byte(v.Lo)})
	}
	if v := flow.FieldByID(flow.TunIPv6Src).Get(k); !v.IsZero() {
		return addr16(v)
	}
	return netip.Addr{}
}

func addr16(v flow.Value) netip.Addr {
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(v.Hi>>(56-8*i)), byte(v.Lo>>(56-8*i))
	}
	return netip.AddrFrom16(b)
}

// Run queries Pods, reports to other Nodes, maintains routes and removes old members until ctx
// ends.
func (q *Querier) Run(ctx context.Context) {
	defer q.routes.Close()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.changed:
			q.apply()
		case <-tick.C:
			q.beat()
		}
	}
}

// beat sends a query or a report if one is due, and removes old members.
func (q *Querier) beat() {
	gateway, mac, on := q.objects.MulticastNode()
	if !on {
		q.noteLacks(q.routes.Remove())
		return
	}
	now := q.clock()
	if now.Sub(q.queried) >= queryInterval {
		q.queried = now
		query := packet.NewIGMPQuery(uint8(answerWithin/(100*time.Millisecond)), uint8(queryInterval/time.Second))
		q.send(flow.GroupAction{ID: tables.GroupMulticastPods}, frame(gateway, mac, allHosts, query))
	}
	q.mu.Lock()
	gone := q.members.expire(now.Add(-podTimeout), now.Add(-nodeTimeout), q.objects.HasPod)
	q.mu.Unlock()
	if gone {
		q.apply()
	} else if now.Sub(q.told) >= reportInterval || !slices.Equal(q.objects.JoinedGroups(), q.reported) { // a policy changed
		q.report()
	} else if q.lacks != "" {
		q.route(q.reported)
	}
}

// apply installs the current groups in the switch, and reports them.
func (q *Querier) apply() {
	q.mu.Lock()
	all := q.members.all()
	q.mu.Unlock()
	if err := q.objects.SetMulticast(all); err != nil {
		q.log.Warn("not all multicast groups are in the switch", "error", err)
	}
	q.report()
}

// report tells other Nodes and the outside which groups this Node has joined and left.
func (q *Querier) report() {
	gateway, mac, on := q.objects.MulticastNode()
	first, known := q.sw.Names().TableID(tables.TableNames()[0])
	if !on || !known {
		return
	}
	joined := q.objects.JoinedGroups()
	q.route(joined)
	left := slices.DeleteFunc(slices.Clone(q.reported), func(a netip.Addr) bool { return slices.Contains(joined, a) })
	q.told, q.reported = q.clock(), joined
	for m := range reports(joined, left) {
		q.send(flow.Resubmit{InPort: flow.PortInPort, Table: first}, frame(gateway, mac, allRouters, m))
	}
}

// route leads groups to this Node.
func (q *Querier) route(joined []netip.Addr) { q.noteLacks(q.routes.Set(joined)) }

// noteLacks records a fault of routes, and logs each once.
func (q *Querier) noteLacks(err error) {
	lacks := ""
	if err != nil {
		lacks = err.Error()
	}
	if lacks != q.lacks && lacks != "" {
		q.log.Warn("multicast routes between pods and the outside are incomplete; trying again", "error", lacks)
	}
	q.lacks = lacks
}

// reports yields the messages of joined and left groups.
func reports(joined, left []netip.Addr) func(func(packet.IGMP) bool) {
	return func(yield func(packet.IGMP) bool) {
		for part := range slices.Chunk(joined, groupsPerReport) {
			if !yield(packet.NewIGMPReport(part, nil)) {
				return
			}
		}
		for part := range slices.Chunk(left, groupsPerReport) {
			if !yield(packet.NewIGMPReport(nil, part)) {
				return
			}
		}
	}
}

func (q *Querier) send(action flow.Action, b []byte) {
	if err := q.sw.PacketOut(flow.PortController, []flow.Action{action}, b); err != nil {
		q.log.Warn("cannot send an IGMP message", "error", err)
	}
}
