package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// The walk notes its steps here, and only here. Four independent observers may watch a walk:
//
//	trace       the steps for a reader (trace.go)
//	recording   the whole walk for the exact-match cache (walkrecording.go)
//	megaflows   the current part of the walk for the megaflow level
//	timer       the time that its tables take (timing.go)
//
// A new kind of action needs one decision: its effect, in effectOf. If its behaviour at run time
// does not follow from the action itself, the action calls noteOnce.

// effect says how an action affects the replay of its walk. In the recording of a megaflow, every
// effect after effectTable ends the megaflow before the action.
type effect uint8

const (
	effectNone   effect = iota // changes nothing that a walk reads
	effectKey                  // writes constant bits to the key's metadata
	effectHeader               // writes constant bits to a header field
	effectTTL                  // takes one from the TTL
	effectTable                // runs another table, and comes back
	effectFixed                // depends on the key, but on no port
	effectReads                // depends on anything in the packet or its connection
	effectOnce                 // must run again for each packet
)

// effectOf returns the effect of a compiled action.
func effectOf(a flow.Action) effect {
	switch a := a.(type) {
	case flow.GotoTable, flow.Conjunction, flow.Note:
		return effectNone
	case *program.Write:
		return effectKey
	case *program.WriteMAC:
		return effectHeader
	case flow.SetField:
		return effectOfSet(a.Field)
	case flow.Load:
		if isHeader(a.Dst.Field) {
			return effectHeader
		}
		return effectReads
	case flow.DecTTL:
		return effectTTL
	case flow.Resubmit:
		return effectOfResubmit(a)
	case *program.Track:
		return effectOfTrack(a)
	case flow.Output, *program.OutputReg, flow.GroupAction:
		return effectFixed
	case *flow.Learn, flow.MeterAction, flow.PushVLAN, flow.PopVLAN, flow.Controller:
		return effectOnce
	}
	return effectReads
}

// isHeader says whether setting a field only writes it in place.
func isHeader(id flow.FieldID) bool { return places[id].size != 0 && id != flow.IPTTL }

func effectOfSet(id flow.FieldID) effect {
	switch {
	case isHeader(id):
		return effectHeader
	case flow.FieldByID(id).Off < flow.HeaderStart:
		return effectFixed
	}
	return effectReads
}

func effectOfResubmit(a flow.Resubmit) effect {
	if a.InPort == flow.PortInPort {
		return effectTable
	}
	return effectReads // its lookup has another in_port
}

func effectOfTrack(a *program.Track) effect {
	if a.ReadsPorts {
		return effectReads
	}
	return effectFixed
}

// noteStart notes that a walk is about to enter the first table.
func (k *walk) noteStart() {
	if k.trace != nil {
		k.trace.out.Start = k.key
	} else {
		k.w.timer.countWalk()
	}
}

// noteEnd notes the end of the walk. Its frame is not yet queued.
func (k *walk) noteEnd() {
	if k.w.timer.on {
		k.w.timer.end()
	}
}

// noteAction notes the first of some actions of a list, before it runs.
func (k *walk) noteAction(actions []flow.Action) {
	if k.trace != nil {
		k.trace.action(k, actions[0])
	}
	m, r := k.w.megaflows, &k.w.rec
	if recording := m.Recording(); recording || r.on {
		e := effectOf(actions[0])
		r.action(e)
		if recording && !k.noteInMegaflow(e, actions) {
			m.End(k.endBefore(actions))
		}
	}
}

// noteInMegaflow notes an action for the megaflow under way. It returns false if the
// megaflow ends before the action.
func (k *walk) noteInMegaflow(e effect, actions []flow.Action) bool {
	m := k.w.megaflows
	switch a := actions[0].(type) {
	case *program.Write:
		m.Write(flowcache.KeyWrite{Index: a.Index, Value: a.Value, Mask: a.Mask})
		return true
	case *program.WriteMAC:
		m.SetHeader(a, a.Field, flow.Ones(48), false)
		return true
	case flow.SetField:
		if e == effectHeader {
			m.SetHeader(a, a.Field, a.Mask, places[a.Field].cover >= pseudoSum)
		}
		return e == effectHeader
	case flow.Load:
		if e == effectHeader {
			id, _, mask := program.InPlace(a.Dst, a.Value)
			m.SetHeader(a, id, mask, places[id].cover >= pseudoSum)
		}
		return e == effectHeader
	case flow.DecTTL:
		m.DecTTL(a)
		return true
	case flow.Resubmit:
		if e == effectTable {
			m.Resubmit(k.endBefore(actions), len(actions) > 1)
		}
		return e == effectTable
	}
	return e == effectNone
}

// endBefore is the end of a megaflow before some actions of the walk's list.
func (k *walk) endBefore(actions []flow.Action) flowcache.End {
	return flowcache.End{Rest: actions, Next: -1, Table: k.table, Entry: k.entry}
}

// noteLookup notes that a table is about to be looked up.
func (k *walk) noteLookup(id uint8, t *lookup.Table) { k.w.megaflows.BeforeLookup(id, t) }

// noteFound notes what a lookup gave.
func (k *walk) noteFound(id uint8, t *lookup.Table, e *lookup.Entry) {
	k.w.megaflows.Lookup(id, t, e)
	k.w.rec.lookup(id, t, e)
}

// noteEntry notes the entry whose actions run next; nil for a table-miss.
func (k *walk) noteEntry(e *flow.Entry) {
	if k.trace != nil {
		k.trace.enters(k, e)
	}
}

// noteMegaflow notes that the walk replays a megaflow.
func (k *walk) noteMegaflow(m *flowcache.Megaflow) {
	k.w.megaflows.Replayed(m, k.frame.Len())
	k.w.rec.megaflow(m)
}

// noteListDone notes that a list of actions is done, and that no table follows.
func (k *walk) noteListDone() { k.w.megaflows.ListDone(k.table, k.entry) }

// noteReturn notes that a resubmit() that other actions follow is done.
func (k *walk) noteReturn() { k.w.megaflows.Return() }

// noteDrop notes why the packet ends here.
func (k *walk) noteDrop(r telemetry.DropReason) {
	switch r {
	case telemetry.DropByEntry, telemetry.DropTableMiss:
		k.w.megaflows.Drop(flowcache.Noted{Reason: r, Table: k.table, Entry: k.entry})
	case telemetry.DropTTL, telemetry.DropTooDeep: // other packets of the megaflow may go farther
		k.w.megaflows.Abandon()
	}
	if k.trace != nil {
		k.trace.drop(k, r)
	}
}

// noteBucket notes the bucket that a group chose, or -1. It returns the bucket to run,
// which a trace may choose.
func (k *walk) noteBucket(g *program.Group, i int) int {
	if k.trace != nil && g.Type == flow.GroupSelect {
		i = k.trace.bucket(k, g, i)
	}
	if i >= 0 {
		k.w.rec.chose(k.frame, g, i)
	}
	return i
}

// noteAnswer notes what conntrack answered to a ct().
func (k *walk) noteAnswer(req *conntrack.Request, v conntrack.Verdict) {
	k.w.rec.answer(k.frame, &k.ct, req, v)
	if k.trace != nil {
		k.trace.answered(k, req)
	}
}

// noteOnce notes that each packet needs its own walk. The reason is a copy of the frame, a table
// of addresses, or a fragment's datagram.
func (k *walk) noteOnce() { k.w.rec.forbid() }

// noteOutput notes that the packet is sent to a port.
func (k *walk) noteOutput(p *switchPort) {
	if k.trace != nil {
		k.trace.output(k, p)
	}
}

// noteLearn notes the entry that a learn action makes.
func (k *walk) noteLearn(e *flow.Entry) {
	if k.trace != nil {
		k.trace.learn(k, e)
	}
}

// notePacketIn notes that the packet goes to the controller.
func (k *walk) notePacketIn(a *flow.Controller) {
	if k.trace != nil {
		k.trace.packetIn(k, a)
	}
}

// noteWait notes that a fragment waits for the rest of its datagram.
func (k *walk) noteWait() {
	if k.trace != nil {
		k.trace.wait(k)
	}
}

// record begins to record the walk of a packet that the cache did not know.
func (k *walk) record(f *packet.Frame) {
	k.w.rec.start(f, &k.layers, k.w.sw.learnings.Load())
	k.parsed = true
}
