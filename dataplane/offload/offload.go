// Package offload offloads established connections, and UDP, to the kernel. From then on the
// kernel forwards them (ports.Offload).
//
//	offload.go  offers, and the table of offload entries
//	put.go      offers become offload entries
//	tunnel.go   … with outer headers to or from another Node, or marks of the Node's stack
//	remove.go   … and end: for a change, with their connection, unused, traced
//	count.go    their packets are credited to flow entries, groups and ports
//
// An offload entry stands for one entry of the exact-match cache. Its key is that entry's
// signature, so the kernel forwards the packets that a worker would replay.
//
//  1. A worker makes an offer after enough packets were replayed, and gets no answer. Everything
//     else happens under one lock that no packet takes.
//  2. Withdrawing all entries is one store, of generation 0, and a wait until no packet is under
//     way by an older one (ports.Offload.Settle). The switch withdraws after it has stored a new
//     pipeline or new ports, and before it reports the change as done.
//  3. An offer has the State under which it was made. It is refused if the switch's State,
//     compared under the same lock, has changed. By 2 and 3 the kernel forwards no packet by an
//     old pipeline after a change.
//  4. A connection that changes ends its own offload by a store to a word that the kernel reads
//     for each packet (ports.Offload.Conns).
//  5. A packet that learns an entry withdraws, by one addition, the offload entries whose walks
//     could meet a learned entry (ports.OffloadLearned). It waits for nothing: a packet that is
//     in the kernel at that moment came before.
package offload

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// Switch is the table's view of its switch. Any goroutine may call the functions.
type Switch struct {
	Conntrack *conntrack.Table
	Clock     func() int64 // nanoseconds
	State     func() State
	Learnings func() uint64 // changes of learned entries; Table.Learned follows each
	// Traced says whether a live trace wants packets of a key that enter by a port.
	Traced func(key *ports.OffloadKey, inPort uint32) bool
}

// State is everything that walks depend on, apart from their packet. It compares with ==.
type State struct {
	Program  *program.Program
	Ports    any // a pointer to the set of ports
	Learners uint64
}

// Port is a port as the kernel forwards from it and to it.
type Port struct {
	No     uint32
	Link   uint32 // ports.Info.OffloadLink; 0 if the kernel cannot forward here
	MTU    int
	Tunnel ports.OffloadTunnel // nil if it is not a tunnel
	Stack  ports.OffloadStack  // nil if its other end is not the Node's stack
	Counts Counts              // packets by offload entries
}

// Path credits packets to the flow entries and groups of a walk. The last of the packets came at
// now.
type Path interface {
	Credit(packets, bytes uint64, now int64)
}

// Offer is one direction of a connection, after a worker has replayed enough of its packets.
type Offer struct {
	Key     ports.OffloadKey // as the walk saw its packets
	Seen    conntrack.Seen   // the walk's only ct()
	Change  flowcache.Change
	Layers  packet.Layers
	Path    Path
	In, Out *Port
	Tunnel  packet.Tunnel // of frames that come from a tunnel, or that go into one
	Marks   [2]uint32     // of frames that come, and of frames that leave
	Made    State
	Learned uint64 // Switch.Learnings, if the walk could meet a learned entry; otherwise 0
}

// Table is the offload entries of a switch. A nil Table is off.
type Table struct {
	sw     Switch
	kernel ports.Offload
	offers chan Offer
	stale  chan struct{} // withdrawn entries must be removed

	mu                     sync.Mutex
	generation             uint32
	current                int     // entries of this generation
	entries                []entry // by place
	conns                  []conn
	byKey                  map[ports.OffloadKey]uint32 // places in entries
	byConn                 map[conntrack.ID]uint32     // places in conns
	byPort                 map[*Port]holding           // entries by the port of their packets' entry
	victim                 int                         // place of the last entry that made room
	freeEntries, freeConns []uint32
	// Places that are no longer in byKey and byConn, but a packet under way may still use.
	leftEntries, leftConns []uint32

	events         [telemetry.NumOffloadEvents]atomic.Uint64
	packets, bytes atomic.Uint64
}

// entry is an offload entry as the switch sees it.
type entry struct {
	used           bool   // not dropped
	made           uint32 // Table.generation at that moment
	learned        bool   // its walk could meet a learned entry
	unanswered     bool   // its connection is unanswered, and the first answer ends it
	key            ports.OffloadKey
	seen           ports.OffloadKey // Offer.Key; it differs if packets of the Node's stack show a mark
	conn           uint32           // place in conns
	path           Path             // nil if the place is free
	in, out        *Port
	packets, bytes uint64 // of the kernel's counts, already credited
	last           int64  // when a packet was last seen to use it
}

// holding is how many entries a port's packets have.
type holding struct{ entries, unanswered int }

// conn is a connection that has offload entries.
type conn struct {
	id      conntrack.ID
	entries []uint32
	moved   bool // packets have passed since the last tellConntrack
}

// offerQueue is how many offers can wait.
const offerQueue = 256

// New makes a table without entries.
func New(sw Switch, kernel ports.Offload) *Table {
	t := &Table{
		sw: sw, kernel: kernel, offers: make(chan Offer, offerQueue), stale: make(chan struct{}, 1), generation: 1,
		byKey: make(map[ports.OffloadKey]uint32), byConn: make(map[conntrack.ID]uint32), byPort: make(map[*Port]holding),
	}
	kernel.Learnings().Add(1) // so that no entry of generation 0 is used
	sw.Conntrack.ShareOffload(kernel.Conns(), kernel.Settle)
	return t
}

// Offer queues an offer, unless too many wait. It never blocks.
func (t *Table) Offer(o Offer) {
	select {
	case t.offers <- o:
	default: // the worker offers again
	}
}

// Run makes offload entries from offers and removes withdrawn ones, until ctx ends.
func (t *Table) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case o := <-t.offers:
			t.put(&o)
		case <-t.stale:
			t.clearOffloaded()
		}
	}
}

// Poll does the pending work of Run.
func (t *Table) Poll() {
	for {
		select {
		case o := <-t.offers:
			t.put(&o)
		case <-t.stale:
			t.clearOffloaded()
		default:
			return
		}
	}
}
