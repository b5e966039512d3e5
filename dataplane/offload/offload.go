// Package offload gives established connections, and UDP, to the kernel, which forwards them
// from then on by itself (ports.Offload).
//
//	offload.go  what is offered, and what there is
//	put.go      offers become offload entries
//	tunnel.go   … with outer headers to or from another Node, or marks of the Node's stack
//	remove.go   … and go again: for a change, with their connection, unused, traced
//	count.go    their packets are credited to flow entries, groups and ports
//
// An offload entry stands for one entry of the exact-match cache. Its key is that entry's
// signature, so the kernel forwards the packets that a worker would replay.
//
//  1. A worker makes an offer after enough packets were replayed, and learns nothing of
//     what becomes of it. Everything else happens under one lock that no packet takes.
//  2. To withdraw all entries is one store, of generation 0, and the wait until no packet
//     is under way by an older one (ports.Offload.Settle). The switch withdraws after it
//     has stored a new pipeline or new ports, and before it reports the change as done.
//  3. An offer names the State that it was made under. It is refused if the switch has
//     another one by now, compared under the same lock. By 2 and 3 the kernel forwards
//     no packet by an old pipeline after a change.
//  4. A connection that changes ends its own offload by a store to a word that the
//     kernel reads for each packet (ports.Offload.Conns).
//  5. A packet that learns an entry withdraws, by one addition, the offload entries whose
//     walks could meet a learned entry (ports.OffloadLearned). It waits for nothing. A packet
//     that is in the kernel at that moment came before.
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

// Switch is what the table needs of its switch. The functions may be called from any
// goroutine.
type Switch struct {
	Conntrack *conntrack.Table
	Clock     func() int64 // nanoseconds
	State     func() State
	Learnings func() uint64 // changes of learned entries; Table.Learned follows each
	// Traced says whether a live trace wants packets of a key that enter by a port.
	Traced func(key *ports.OffloadKey, inPort uint32) bool
}

// State is what walks depend on besides their packet. It compares with ==.
type State struct {
	Program  *program.Program
	Ports    any // a pointer to the set of ports
	Learners uint64
}

// Port is a port as the kernel forwards from it and to it.
type Port struct {
	No     uint32
	Link   uint32 // ports.Info.Offload; 0 if the kernel cannot forward here
	MTU    int
	Tunnel ports.OffloadTunnel // nil if it is none
	Stack  ports.OffloadStack  // nil if its other end is not the Node's stack
	Counts Counts              // what passed by offload entries
}

// Path credits packets, the last of which came at now, to the flow entries and groups of
// the walk that an offload entry stands for.
type Path interface {
	Credit(packets, bytes uint64, now int64)
}

// Offer is a connection's direction that a worker has replayed often enough.
type Offer struct {
	Key     ports.OffloadKey // as the walk saw its packets
	Seen    conntrack.Seen   // the walk's only ct()
	Change  flowcache.Change
	Layers  packet.Layers
	Path    Path
	In, Out *Port
	Tunnel  packet.Tunnel // what frames come with from a tunnel, or go with into one
	Marks   [2]uint32     // that frames come and leave with
	Made    State
	Learned uint64 // Switch.Learnings, if the walk could meet a learned entry; otherwise 0
}

// Table is the offload entries of a switch. A nil one is off.
type Table struct {
	sw     Switch
	kernel ports.Offload
	offers chan Offer
	stale  chan struct{} // entries have been withdrawn and are to be cleared away

	mu                     sync.Mutex
	generation             uint32
	current                int     // entries of this generation
	entries                []entry // by place
	conns                  []conn
	byKey                  map[ports.OffloadKey]uint32 // places in entries
	byConn                 map[conntrack.ID]uint32     // places in conns
	byPort                 map[*Port]holding           // by where entries begin
	victim                 int                         // place of the last entry that made room
	freeEntries, freeConns []uint32
	// Places that have left byKey and byConn, but may be in use by a packet under way.
	leftEntries, leftConns []uint32

	events         [telemetry.NumOffloadEvents]atomic.Uint64
	packets, bytes atomic.Uint64
}

// entry is an offload entry as the switch sees it.
type entry struct {
	used           bool   // not dropped
	made           uint32 // Table.generation at that moment
	learned        bool   // its walk could meet a learned entry
	unanswered     bool   // its connection was, and the first answer ends it
	key            ports.OffloadKey
	seen           ports.OffloadKey // Offer.Key: it differs where packets of the Node's stack show a mark
	conn           uint32           // place in conns
	path           Path             // nil if the place is free
	in, out        *Port
	packets, bytes uint64 // of the kernel's count, credited already
	last           int64  // when packets were last seen to have used it
}

// holding is how many entries begin at a port.
type holding struct{ entries, unanswered int }

// conn is a connection that has offload entries.
type conn struct {
	id      conntrack.ID
	entries []uint32
	moved   bool // packets have passed since conntrack was told
}

// offerQueue is how many offers may wait.
const offerQueue = 256

// New makes a table without entries.
func New(sw Switch, kernel ports.Offload) *Table {
	t := &Table{
		sw: sw, kernel: kernel, offers: make(chan Offer, offerQueue), stale: make(chan struct{}, 1), generation: 1,
		byKey: make(map[ports.OffloadKey]uint32), byConn: make(map[conntrack.ID]uint32), byPort: make(map[*Port]holding),
	}
	kernel.Learnings().Add(1) // no entry of generation 0 may be taken
	sw.Conntrack.ShareOffload(kernel.Conns(), kernel.Settle)
	return t
}

// Offer takes an offer, unless too many wait. It never blocks.
func (t *Table) Offer(o Offer) {
	select {
	case t.offers <- o:
	default: // the worker offers again
	}
}

// Run makes offload entries of offers and clears withdrawn ones away, until
// ctx ends.
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

// poll does what Run would do now.
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
