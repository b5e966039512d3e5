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

// Recording a walk: if the exact-match cache has no entry for a packet, note.go reports the
// packet's walk to the recording. A step that cannot be replayed, or may not be, forbids the
// recording.
//
// The walk of a connection's first packet may be recorded for all ports, under a wildcard
// signature (flowcache/wildcard.go). One call to conntrack then begins the next connection
// between the same two ends, or of a client to the same Service. All of these must hold:
//
//  1. All its lookups were in megaflows that it replayed, and these examined no bit of
//     the source port. So no lookup depended on a port that the signature lacks.
//  2. Between the megaflows there were only ct(), one select group and an output, none of
//     which read a port except to choose a bucket. The bucket is in the signature.
//  3. Nothing wrote an address or a port, except conntrack's translation of the
//     destination to one address and port. So what is rewritten is the same for all.
//  4. conntrack found no connection, once, and began at most one. A replay asks
//     conntrack the same, and walks if it answers something else.
//
// The entry is valid as long as other entries, with one exception. A megaflow passes a table that
// can learn only while that table has learned nothing. So the entry is valid until a table learns
// its first entry (Switch.awoken).

// recording is the walk under way as the cache will store it.
type recording struct {
	on       bool // a walk is being recorded, and no step has forbidden it
	path     path
	parts    []part // its lookups
	mayLearn bool   // it looked up a table that may hold learned entries
	steps    [flowcache.MaxSteps]conntrack.Seen
	n        int               // steps
	est      bool              // conntrack called the packet established
	plain    bool              // a step knows a connection: only plain packets pass it
	anyPorts bool              // rules 1 to 3 hold so far, without the examined bits of megaflows
	begins   conntrack.Request // of the ct() that began a connection; Commit is unset without one
	chooser  *program.Group    // that chose a bucket by the ports; nil without one
	bucket   int               // of chooser
	learns   uint64            // changes of learned entries when the walk began
	layers   packet.Layers
	head     flowcache.Head // the frame's headers when it began
}

// part is a lookup of a walk, or a megaflow that it replayed.
type part struct {
	visit    flowcache.Visit
	megaflow *flowcache.Megaflow
}

// start starts to record the walk of a frame with headers at l. The rest of path is written when
// the walk ends, because few recordings get that far.
func (r *recording) start(f *packet.Frame, l *packet.Layers, learns uint64) {
	r.on, r.mayLearn, r.est, r.plain, r.anyPorts = true, false, false, false, true
	r.begins.Commit, r.chooser = false, nil
	r.n, r.learns, r.layers = 0, learns, *l
	r.path.visits, r.path.groups, r.parts = r.path.visits[:0], r.path.groups[:0], r.parts[:0]
	r.head.CopyFrom(f.Bytes())
}

// forbid stops the recording, because the walk cannot be replayed.
func (r *recording) forbid() { r.on = false }

// lookup records a lookup and the entry that it found.
func (r *recording) lookup(id uint8, t *lookup.Table, e *lookup.Entry) {
	if !r.on {
		return
	}
	r.anyPorts = false
	v := flowcache.Visit{State: t.Live, Table: id}
	if e != nil {
		v.Entry = e.Counters
	}
	r.parts = append(r.parts, part{visit: v})
	r.mayLearn = r.mayLearn || t.Live.MayLearn.Load()
}

// megaflow records the lookups of a replayed megaflow.
func (r *recording) megaflow(m *flowcache.Megaflow) {
	if r.on {
		r.parts = append(r.parts, part{megaflow: m})
		r.mayLearn = r.mayLearn || m.MayLearn
	}
}

// action records the effect of an action.
func (r *recording) action(e effect) {
	switch e {
	case effectHeader, effectTTL, effectReads:
		r.anyPorts = false
	case effectOnce:
		r.on = false
	}
}

// chose records that a select group chose a bucket, by the addresses and ports with which the
// frame came.
func (r *recording) chose(f *packet.Frame, g *program.Group, bucket int) {
	r.anyPorts = r.anyPorts && r.on && r.chooser == nil && g.Type == flow.GroupSelect && bucket < flowcache.MaxBuckets && r.head.SameTuple(f.Bytes(), &r.layers)
	r.chooser, r.bucket = g, bucket
}

// group records the credited counters of a group or bucket.
func (r *recording) group(c *program.BucketCounters) {
	if r.on {
		r.path.groups = append(r.path.groups, c)
	}
}

// answer records conntrack's answer, if a replay can ask for it again.
func (r *recording) answer(f *packet.Frame, m *conntrack.Meta, req *conntrack.Request, v conntrack.Verdict) {
	if !r.on {
		return
	}
	if r.begins.Commit {
		r.on = false
		return
	}
	if r.n > 0 && m.Began(&r.steps[r.n-1]) {
		r.began(m, req, v)
		return
	}
	s, ok := m.Seen()
	if !ok || req.Force || v.Drop != conntrack.DropNone || !s.Known() && !r.head.SameTuple(f.Bytes(), &r.layers) {
		r.on = false
		return
	}
	r.plain = r.plain || s.Known()
	for i := range r.steps[:r.n] {
		covered, apart := s.Follows(&r.steps[i])
		if covered {
			return
		}
		r.on = r.on && apart
	}
	if r.n == len(r.steps) {
		r.on = false
		return
	}
	r.steps[r.n] = s
	r.n++
	r.est = r.est || m.State&conntrack.Established != 0
}

// began records a ct() that began the connection which the ct() before it had not found.
func (r *recording) began(m *conntrack.Meta, req *conntrack.Request, v conntrack.Verdict) {
	r.on = r.anyPorts && r.n == 1 && v.Drop == conntrack.DropNone && !req.Force && m.AsRequested(req)
	r.begins = *req
	r.begins.Near = nil
}

// firstPacket returns which port bits of the signature the walk depends on, if it may be
// recorded for other ports (rules 1 to 4).
func (r *recording) firstPacket() (mask flowcache.PortMask, ok bool) {
	if !r.anyPorts || r.n != 1 || r.plain || !flowcache.HasPorts(r.layers.Proto) {
		return 0, false
	}
	if r.chooser != nil || r.begins.Commit && r.begins.NAT != nil { // that port itself is rewritten
		mask = flowcache.DstPort
	}
	for i := range r.parts {
		m := r.parts[i].megaflow
		if m.Tuple {
			return 0, false
		}
		mask |= m.PortsExamined()
	}
	return flowcache.WildMask(mask)
}

// listVisits lists the walk's lookups. Most recordings do not get this far.
func (r *recording) listVisits() {
	for i := range r.parts {
		if p := &r.parts[i]; p.megaflow != nil {
			r.path.visits = append(r.path.visits, p.megaflow.Visits...)
		} else {
			r.path.visits = append(r.path.visits, p.visit)
		}
	}
}

// repeats says whether another packet of the same signature would be dropped for the same reason.
// A packet whose TTL expires must walk, because the controller may want it.
func repeats(r telemetry.DropReason) bool {
	switch r {
	case telemetry.DropByEntry, telemetry.DropTableMiss, telemetry.DropNoOutput, telemetry.DropToInPort, telemetry.DropNoSuchPort, telemetry.DropNoTunnelDst, telemetry.DropTooDeep, telemetry.DropNoBucket, telemetry.DropNoForward:
		return true
	}
	return false
}

// remember ends a recording. The walk is over, and its frame is not yet queued.
func (k *walk) remember() {
	r := &k.w.rec
	if !r.on {
		return
	}
	r.on = false
	p := &r.path
	*p = path{visits: p.visits, groups: p.groups}
	switch {
	case k.sent == 1 && k.held.yes && k.copiesDropped == 0 && k.waits == 0:
		p.out, p.mark = k.held.port, k.frame.Mark
		if p.out.tunnel {
			p.tunnel = k.frame.Tunnel
		}
	case k.sent == 0 && k.copiesDropped == 0 && k.waits == 0 && repeats(k.reason):
		p.drop = telemetry.Drop{Reason: k.reason, Table: k.at, Entry: k.by, CT: telemetry.CTOf(&k.ct)}
	default:
		return
	}
	p.last, p.met = k.last, k.met
	c, sig := k.w.cache, &k.w.cache.Sig
	mask, anyPorts := r.firstPacket()
	switch {
	case anyPorts:
		if sig = c.WildPorts(mask); r.chooser != nil {
			sig = c.WildBucket(r.bucket)
		}
		if r.mayLearn {
			p.learned = k.w.megaflows.Awoken() + 1
		}
		if r.begins.Commit {
			p.begins, r.n = r.begins, 0
		}
	case r.begins.Commit:
		return
	case r.mayLearn:
		p.learned = r.learns
	}
	if anyPorts && r.chooser != nil && c.crowded() || !c.keep(r, k, sig) || !anyPorts {
		return
	}
	c.AddWildMask(mask)
	if r.chooser != nil {
		c.askGroup(r.chooser, k.inPort)
	}
}

// keep makes a cache entry of a recorded walk under a signature. It returns false if the walk is
// not worth one, cannot be replayed, or finds no room.
func (c *cache) keep(r *recording, k *walk, sig *flowcache.Signature) bool {
	if r.plain && !conntrack.Plain(r.layers.Proto, sig.TCPFlags()) {
		return false
	}
	if !r.est && !c.CameBefore(sig) {
		c.Count[telemetry.CacheOnce]++
		return false
	}
	var ch flowcache.Change
	if !ch.Between(&r.layers, r.head[:], k.frame) {
		return false
	}
	if c.full() {
		c.endBatch(k.w)
		c.forget()
	}
	e := c.Place(sig, k.inPort)
	if e == nil {
		return false
	}
	r.listVisits()
	e.Path, e.Change = c.intern(&r.path), ch
	e.CT, e.Steps = r.steps, uint8(r.n)
	c.Count[telemetry.CacheKept]++
	return true
}

// askGroup records that a group chooses a bucket for first packets like the current one. A change
// of the group empties the cache, as any change of the pipeline does.
func (c *cache) askGroup(g *program.Group, port uint32) {
	if e := c.Place(c.WildPorts(flowcache.DstPort), port); e != nil {
		e.AsksGroup, e.Path = true, g.ID
	}
}
