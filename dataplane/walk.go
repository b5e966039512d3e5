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
//	1. start     the key is extracted, port security is checked (security.go), the
//	             walk enters the first table
//	2. table     lookup gives an entry; it is credited and its actions run
//	3. run       actions in order (act.go); goto_table jumps, resubmit calls and
//	             returns, ct() with a table and groups continue on the state as
//	             it is then (conntrack.go, group.go)
//	4. send      output frames are queued per port (output.go)
//	5. finish    exactly one verdict: sent, handed to packet-in, dropped for the
//	             reason noted last, or, for a fragment at a ct(), waiting for the
//	             rest of its datagram, with which its walk goes on (fragment.go)
//
// Traffic, traces, packet-outs and replays all walk here. The trace of a made-up packet
// differs only in what it does not do: credit, learn, queue (trace.go). That of a real
// packet (live.go) differs in nothing.

// limits of one packet's walk, as Open vSwitch has them (MAX_DEPTH and
// MAX_RESUBMITS): they end loops that entries make.
const (
	maxDepth   = 64
	maxLookups = 4096
)

// walk is one packet's state. A worker has one and uses it for packet after
// packet.
type walk struct {
	w     *worker
	prog  *program.Program // the pipeline as it was when the packet came, to the walk's end
	trace *tracer          // nil for traffic that nobody watches
	lives asking           // which live traces want the packet

	frame    *packet.Frame
	key      flow.Key // behind a pointer, so that its words are aligned
	layers   packet.Layers
	parsed   bool               // layers is of the packet that is about to enter
	ct       conntrack.Meta     // what conntrack knows of the packet, beside the key
	original conntrack.Original // of it: here, it needs no copy
	inPort   uint32

	near    *conntrack.Near   // may say where the packet is looked up
	request conntrack.Request // of the ct() action under way: here, it needs no heap

	table   uint8       // where the walk stands
	entry   *flow.Entry // whose actions it runs there; nil for a table-miss
	last    uint8       // table looked up last
	met     *flow.Entry // what that lookup gave
	depth   int         // nested tables
	groups  int         // nested groups
	lookups int         // tables visited and groups run
	rests   []rest      // enclosing action lists that are not done yet, outermost first
	resumed *flow.Entry // stands for entry while a resumed list runs; nil otherwise
	stopped bool        // no further action runs: a meter, a pause or conntrack said so
	held    held        // an output that may still take the frame itself

	sent          int // outputs and packet-ins
	before        int // of them, those before the walk paused
	copiesDropped int // copies that no frame was left for
	waits         int // frames that wait for the rest of their datagram
	reason        telemetry.DropReason
	at            uint8       // table of reason
	by            *flow.Entry // … and entry
}

// rest is what remains of an action list while an action of it runs tables.
type rest struct {
	actions []flow.Action
	table   uint8
	entry   *flow.Entry
	resumed *flow.Entry // of a list that a controller has given back, in place of entry
}

// held is an output whose frame has not been handed over yet. If nothing more happens to
// the packet, it gets the frame without a copy.
type held struct {
	port *switchPort
	yes  bool
}

// packet walks one frame, which belongs to the walk from here on.
func (k *walk) packet(f *packet.Frame, inPort uint32) {
	switch k.replay(f, inPort) {
	case replayed:
		return
	case missed:
		k.record(f)
	}
	k.enter(f, inPort)
}

// enter walks one frame from the first table on.
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

// extract makes the packet's key. It returns why the packet may not enter the first
// table: the port's security forbids it, or its offload state does not fit it. Or its tunnel has an
// option that is not known.
func (k *walk) extract() telemetry.DropReason {
	admitted := k.parsed // by replay, which has read the headers, too
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

// finish gives the packet its verdict and the frame its end.
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

// drop notes why the packet goes nowhere from here. It is the only way to lose
// a packet; it counts when the walk ends without having sent it.
func (k *walk) drop(r telemetry.DropReason) {
	k.reason, k.at, k.by = r, k.table, k.entry
	k.noteDrop(r)
}

// dropCopy notes a copy that no frame was left for. It is a drop like others if it is all
// there was of the packet, and counted apart if the rest was sent.
func (k *walk) dropCopy() {
	k.copiesDropped++
	k.noteOnce()
	k.drop(telemetry.DropNoFrame)
}

// walkTable runs tables from one on, following goto_table.
func (k *walk) walkTable(id uint8) { k.walkTableAs(id, flow.PortInPort) }

// walkTableAs does that, and the first lookup has a port as in_port; flow.PortInPort for the
// packet's own.
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

// visitAs does that with another in_port for the lookup; flow.PortInPort for the packet's own.
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

// findAs looks a table up with another in_port. No megaflow is being recorded then, because
// what it would examine is not the packet's.
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

// find looks a table up; traffic counts.
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

// branch runs f on a copy of the packet, as clone(), groups and the tables behind a ct()
// in mid-list do. What f changes is undone for the actions that follow. When nothing
// follows, no copy is made.
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

// endBranch hands the copy's last output over, or gives the copy back.
func (k *walk) endBranch() {
	if k.held.yes {
		k.w.queue(k.held.port, k.frame)
	} else if k.frame != nil {
		k.w.release(k.frame)
	}
	k.frame, k.held = nil, held{}
}
