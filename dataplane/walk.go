package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// A packet's way through the tables.
//
//  1. start: the key is extracted, port security is checked (security.go), and the walk enters
//     the first table.
//  2. table: a lookup gives an entry. It is credited and its actions run.
//  3. run: the actions run in order (act.go). goto_table jumps; resubmit calls and returns.
//     Groups and ct() with a table continue with the current state (act.go, conntrack.go).
//  4. send: output frames are queued per port (output.go).
//  5. finish: the walk has exactly one verdict: sent, packet-in, or dropped for the reason noted
//     last. A fragment at a ct() may instead wait for the rest of its datagram; its walk
//     continues later (fragment.go).
//
// Traffic, traces, packet-outs and replays all walk here. The trace of a made-up packet differs
// only in three things that it does not do: credit, learn, queue (trace.go). The trace of a real
// packet (live.go) differs in nothing.

// Limits of one packet's walk, as in Open vSwitch (MAX_DEPTH and MAX_RESUBMITS). They end loops
// that entries form.
const (
	maxDepth   = 64
	maxLookups = 4096
)

// walk is one packet's state. A worker has one walk and reuses it for each packet.
type walk struct {
	w     *worker
	prog  *program.Program // the pipeline when the packet came, until the walk's end
	trace *tracer          // nil for traffic without a trace
	lives asking           // which live traces want the packet

	frame    *packet.Frame
	key      flow.Key // behind a pointer, so that its words are aligned
	layers   packet.Layers
	parsed   bool               // layers is of the packet that is about to enter
	ct       conntrack.Meta     // the packet's conntrack state, kept beside the key
	original conntrack.Original // of ct; in the walk, so that it needs no copy
	inPort   uint32

	near    *conntrack.Near   // a hint where conntrack finds the packet
	request conntrack.Request // of the current ct() action; in the walk, so that it needs no heap

	table   uint8       // the current table
	entry   *flow.Entry // whose actions run; nil for a table-miss
	last    uint8       // table looked up last
	met     *flow.Entry // the entry that this lookup found
	depth   int         // nested tables
	groups  int         // nested groups
	lookups int         // tables visited and groups run
	rests   []rest      // unfinished enclosing action lists, outermost first
	resumed *flow.Entry // stands for entry while a resumed list runs; nil otherwise
	stopped bool        // no further action runs, because of a meter, a pause or conntrack
	held    held        // an output that may still take the frame itself

	sent          int // outputs and packet-ins
	before        int // of them, those before the walk paused
	copiesDropped int // copies for which no frame was left
	waits         int // frames that wait for the rest of their datagram
	reason        telemetry.DropReason
	at            uint8       // table of reason
	by            *flow.Entry // … and entry
}

// rest is the remaining actions of a list while one of its actions runs tables.
type rest struct {
	actions []flow.Action
	table   uint8
	entry   *flow.Entry
	resumed *flow.Entry // replaces entry in a list that a controller has sent back
}

// held is an output whose frame is not queued yet. If the packet does not change before the walk
// ends, the port gets the frame without a copy.
type held struct {
	port *switchPort
	yes  bool
}

// packet walks one frame, and takes ownership of it.
func (k *walk) packet(f *packet.Frame, inPort uint32) {
	switch k.replay(f, inPort) {
	case replayed:
		return
	case missed:
		k.record(f)
	}
	k.enter(f, inPort)
}

// enter walks one frame from the first table.
func (k *walk) enter(f *packet.Frame, inPort uint32) {
	k.beginPacket(f, inPort)
	if k.prog == nil {
		k.drop(telemetry.DropNoPipeline)
	} else if f.Len() < 14 {
		k.drop(telemetry.DropRuntFrame)
	} else {
		why := k.extract()
		k.noteStart()
		if why == telemetry.NotDropped {
			k.walkTable(k.prog.First)
		} else {
			k.drop(why)
		}
	}
	k.finish()
	k.walkDatagrams()
}

// extract makes the packet's key. It returns why the packet may not enter the first table.
// Reasons are port security, offload state that does not fit the packet, and an unknown tunnel
// option.
func (k *walk) extract() telemetry.DropReason {
	admitted := k.parsed // by replay, which has also read the headers
	k.parsed = false
	if !admitted {
		k.layers = packet.ParseLayers(k.frame.Bytes())
	}
	flow.ExtractAt(k.frame, k.inPort, &k.key, &k.layers)
	if o := k.frame.Tunnel.Options; o != "" && !k.key.SetTunnelOptions(o, k.prog.Names.TunnelOptions()) {
		return telemetry.DropTunnelOption
	}
	why := k.violation()
	if admitted || why != telemetry.NotDropped || packet.AdmitOffload(k.frame, &k.layers) {
		return why
	}
	if packet.TooManySegments(k.frame, &k.layers) {
		return telemetry.DropSegments
	}
	return telemetry.DropBadOffload
}

// beginPacket sets the per-packet state.
func (k *walk) beginPacket(f *packet.Frame, inPort uint32) {
	k.prog = k.w.sw.program.Load()
	k.w.megaflows.BeginWalk(k.prog, k.w.sw.learners.Load(), k.w.sw.awoken.Load())
	k.frame, k.inPort = f, inPort
	k.ct = conntrack.Meta{}
	k.depth, k.groups, k.lookups, k.rests = 0, 0, 0, k.rests[:0]
	k.table, k.last, k.entry, k.met = 0, 0, nil, nil
	if k.prog != nil {
		k.table, k.last = k.prog.First, k.prog.First
	}
	k.stopped, k.held = false, held{}
	k.sent, k.before, k.copiesDropped, k.waits, k.reason, k.at, k.by = 0, 0, 0, 0, telemetry.NotDropped, 0, nil
}

// finish decides the packet's verdict, and queues or releases the frame.
func (k *walk) finish() {
	k.noteEnd()
	k.parsed = false
	if k.sent == 0 && k.waits == 0 && k.reason == telemetry.NotDropped {
		k.table, k.entry = k.last, k.met
		k.drop(telemetry.DropNoOutput)
	}
	k.remember()
	k.walked()
	if k.sent > 0 || k.waits > 0 {
		for range k.copiesDropped {
			k.w.countLateDrop(k.frame, telemetry.DropNoFrame)
		}
	}
	switch {
	case k.held.yes:
		k.w.queue(k.held.port, k.frame)
		k.frame = nil
	case k.sent == 0 && k.waits == 0:
		k.w.countDrop(k.frame, &telemetry.Drop{Reason: k.reason, Table: k.at, Entry: k.by, CT: telemetry.CTOf(&k.ct)})
	}
	if k.frame != nil {
		k.w.release(k.frame)
		k.frame = nil
	}
	if k.trace != nil {
		k.tellLive()
	}
}

// drop notes why the packet ends here. It is the only way to drop a packet. The drop counts if
// the walk ends without having sent the packet.
func (k *walk) drop(r telemetry.DropReason) {
	k.reason, k.at, k.by = r, k.table, k.entry
	k.noteDrop(r)
}

// dropCopy notes a copy for which no frame was left. If the packet has no other output, this is
// an ordinary drop. Otherwise it is counted separately.
func (k *walk) dropCopy() {
	k.copiesDropped++
	k.noteOnce()
	k.drop(telemetry.DropNoFrame)
}

// walkTable runs tables, beginning with one, and follows goto_table.
func (k *walk) walkTable(id uint8) { k.walkTableAs(id, flow.PortInPort) }

// walkTableAs is walkTable with another in_port for the first lookup; flow.PortInPort stands for
// the packet's own.
func (k *walk) walkTableAs(id uint8, port uint32) {
	if k.depth == maxDepth {
		k.drop(telemetry.DropTooDeep)
		return
	}
	from, by, depth := k.table, k.entry, k.depth
	k.depth++
	next := int(id)
	if port != flow.PortInPort {
		next = k.visitAs(id, port)
	}
	for next >= 0 {
		next = k.step(uint8(next))
	}
	k.table, k.entry, k.depth = from, by, depth
}

// visit looks one table up and runs the entry's actions. It returns the table
// that goto_table names, or -1.
func (k *walk) visit(id uint8) int { return k.visitAs(id, flow.PortInPort) }

// visitAs is visit with another in_port for the lookup; flow.PortInPort stands for the packet's
// own.
func (k *walk) visitAs(id uint8, port uint32) int {
	k.table, k.last, k.entry, k.met = id, id, nil, nil
	if k.lookups++; k.lookups > maxLookups {
		k.drop(telemetry.DropTooDeep)
		return -1
	}
	t := k.prog.Tables[id]
	if t == nil {
		k.miss()
		return -1
	}
	e := k.findAs(id, t, port)
	if e == nil {
		k.miss()
		return -1
	}
	k.entry, k.met = e.Entry, e.Entry
	k.noteEntry(e.Entry)
	next := -1
	if len(e.Actions) == 0 {
		k.drop(telemetry.DropByEntry)
	} else {
		next = k.run(e.Compiled)
	}
	if next < 0 {
		k.noteListDone()
	}
	return next
}

// findAs looks a table up with another in_port. No megaflow is being recorded then, because it
// would examine an in_port that is not the packet's.
func (k *walk) findAs(id uint8, t *lookup.Table, port uint32) *lookup.Entry {
	if port == flow.PortInPort {
		return k.find(id, t)
	}
	own := k.key.InPort()
	k.key.SetInPort(port)
	e := k.find(id, t)
	k.key.SetInPort(own)
	return e
}

// find looks a table up. It credits the entry unless the trace is dry.
func (k *walk) find(id uint8, t *lookup.Table) *lookup.Entry {
	if k.dry() {
		return k.w.scratch.Find(t, &k.key)
	}
	k.noteLookup(id, t)
	e := k.w.find(id, t, &k.key)
	k.noteFound(id, t, e)
	if e != nil {
		k.w.batchCounts.Count(e.Counters, k.frame.Len(), k.w.now)
	}
	return e
}

func (k *walk) miss() {
	k.noteEntry(nil)
	k.drop(telemetry.DropTableMiss)
	k.noteListDone()
}

// branch runs f on a copy of the packet, as clone(), groups and the tables of a ct() in mid-list
// do. The actions that follow see the packet as it was before f. If nothing follows, branch makes
// no copy.
func (k *walk) branch(more bool, f func()) {
	if !more && len(k.rests) == 0 {
		f()
		return
	}
	k.releaseHeld()
	k.noteOnce()
	saved := *k
	frame := k.w.copyFrame(k.frame)
	if frame == nil {
		k.dropCopy()
		return
	}
	k.frame, k.rests = frame, k.rests[len(k.rests):]
	f()
	k.endBranch()
	if k.trace != nil {
		k.trace.settle(k)
		defer k.trace.restore(k)
	}
	saved.sent, saved.copiesDropped, saved.waits, saved.reason, saved.at, saved.by = k.sent, k.copiesDropped, k.waits, k.reason, k.at, k.by
	saved.lookups, saved.last, saved.met = k.lookups, k.last, k.met
	*k = saved
}

// endBranch queues the copy for its last output, or releases it.
func (k *walk) endBranch() {
	if k.held.yes {
		k.w.queue(k.held.port, k.frame)
	} else if k.frame != nil {
		k.w.release(k.frame)
	}
	k.frame, k.held = nil, held{}
}
