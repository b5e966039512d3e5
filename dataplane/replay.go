package dataplane

import (
	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// Replaying: the cache repeats a remembered walk for another packet. If it cannot repeat all of
// it, it changes nothing and the packet walks.

// outcome is the cache's result for a packet.
type outcome uint8

const (
	walks    outcome = iota // the packet must walk
	missed                  // … and its walk may be recorded
	replayed                // the packet has its verdict
)

// replay sends or drops a packet as a remembered walk did. Unless it returns replayed, the packet
// is unchanged.
func (k *walk) replay(f *packet.Frame, inPort uint32) outcome {
	c, prog := k.w.cache, k.w.sw.program.Load()
	if c == nil || prog == nil {
		return walks
	}
	l := &k.layers
	c.keepUp(prog, k.w) // if the walk starts under a newer program, the next packet empties the cache
	if !c.Sig.Read(f, inPort, l) || !packet.AdmitOffload(f, l) {
		c.Count[telemetry.CacheUnfit]++
		return walks
	}
	learns := k.w.sw.learnings.Load()
	e := c.Find()
	if k.lives.set != nil && k.wanted(e, f, inPort) {
		return walks
	}
	why := telemetry.CacheMiss
	if e != nil {
		p := c.paths[e.Path]
		if p.learned != 0 && p.learned != learns {
			why = telemetry.CacheLearned
		} else if !k.passes(e, f) {
			why = telemetry.CacheChanged
		} else {
			c.Count[telemetry.CacheHit]++
			c.Touch(e)
			k.warmUp(e, p, f, inPort)
			k.follow(e, p, f, inPort)
			return replayed
		}
	}
	if why != telemetry.CacheLearned && k.lives.set == nil && k.replayFirst(f, inPort) {
		return replayed
	}
	c.Count[why]++
	return missed
}

// passes asks conntrack whether each ct() of the walk still gets the same answer. If one does
// not, the packet walks. The walk then repeats the ct() actions that passed, which changes
// nothing (conntrack.Pass).
func (k *walk) passes(e *flowcache.Entry, f *packet.Frame) bool {
	l, c := &k.layers, k.w.cache
	if (c.paths[e.Path].out != nil || e.Parts != 0) && flowcache.Ambiguous(f, l) {
		return false
	}
	if e.Steps == 0 {
		return true
	}
	if !c.pass.Read(f, l) {
		return false
	}
	for i := range e.Steps {
		if !k.w.sw.conntrack.Pass(&e.CT[i], &c.pass, k.w.now) {
			return false
		}
	}
	return true
}

// follow applies a path's verdict to the packet.
func (k *walk) follow(e *flowcache.Entry, p *path, f *packet.Frame, inPort uint32) {
	k.w.cache.count(p, f.Len())
	k.inPort, k.last, k.met = inPort, p.last, p.met
	k.ct.State, k.ct.Zone, k.ct.Mark, k.ct.Label = 0, 0, 0, conntrack.Label{} // of an earlier packet
	if p.out == nil {
		k.w.packetCounters.dropped++
		k.noteReplayed(e, &p.drop, f)
		k.w.release(f)
		return
	}
	if e.Parts != 0 {
		e.Apply(f, &k.layers)
	}
	f.Mark = p.mark
	if p.out.tunnel {
		f.Tunnel = p.tunnel
	}
	k.w.queue(p.out, f)
}

// replayFirst treats the first packet of a connection like that of an earlier connection, whose
// ports may differ. If it returns false, the packet must walk and is unchanged.
func (k *walk) replayFirst(f *packet.Frame, inPort uint32) bool {
	c := k.w.cache
	if c.WildMasks() == 0 || !flowcache.HasPorts(k.layers.Proto) {
		return false
	}
	for i := range c.WildMasks() {
		e := c.FindWild(i)
		if e != nil && e.AsksGroup {
			c.Touch(e)
			e = k.findBucket(c.prog.Groups.Get(e.Path))
		}
		if e != nil && k.begins(e, f, inPort) {
			c.MatchedWild(i)
			return true
		}
	}
	return false
}

// findBucket returns the entry for the bucket that a group chooses for the packet, or
// nil.
func (k *walk) findBucket(g *program.Group) *flowcache.Entry {
	i := g.Choose(program.TupleHash(k.w.cache.Sig.Tuple(), k.w.sw.hashSeed))
	if i < 0 {
		return nil
	}
	return k.w.cache.FindBucket(i)
}

// begins begins the packet's connection as an entry says, and applies the entry's verdict. It
// returns false, with nothing changed, if conntrack answers otherwise than for the entry's walk.
func (k *walk) begins(e *flowcache.Entry, f *packet.Frame, inPort uint32) bool {
	p := k.w.cache.paths[e.Path]
	if p.learned != 0 && p.learned != k.w.sw.awoken.Load()+1 || !k.passes(e, f) {
		return false
	}
	if p.begins.Commit {
		k.request = p.begins
		k.request.Near = k.near
		if !k.w.sw.conntrack.BeginConnection(f, &k.layers, &k.ct, &k.request, k.w.now) {
			return false
		}
	}
	k.w.cache.Count[telemetry.CacheFirst]++
	k.w.cache.Touch(e)
	k.follow(e, p, f, inPort)
	return true
}

// step runs one table: it replays a megaflow, or looks the table up. It returns the next table,
// or -1. A traced or timed walk looks every table up.
func (k *walk) step(id uint8) int {
	m := k.w.megaflows
	if !m.Usable(k.prog) || k.trace != nil || k.w.timer.on {
		return k.visit(id)
	}
	if t := k.prog.Tables[id]; t == nil || !t.Live.Learned.None() {
		return k.visit(id)
	}
	if r := m.Find(id, &k.key); r == nil {
		m.Record(id, &k.key, k.inPort)
	} else if k.fits(r) {
		return k.replayMegaflow(r)
	}
	return k.visit(id)
}

// fits says whether the packet can take a megaflow to its end. Its TTL must suffice, and the
// lookups and the depth must stay within their limits.
func (k *walk) fits(r *flowcache.Megaflow) bool {
	return k.lookups+len(r.Visits) <= maxLookups && k.depth+r.Deepest <= maxDepth &&
		(r.TTLs == 0 || k.key[ttlAt] > r.TTLs)
}

// replayMegaflow repeats a megaflow, and then runs the remaining actions of its list. It returns
// the next table, or -1.
func (k *walk) replayMegaflow(r *flowcache.Megaflow) int {
	for i := range r.Writes {
		w := &r.Writes[i]
		k.key.SetWord(w.Index, w.Value, w.Mask)
	}
	for _, a := range r.Sets {
		k.act(a, nil)
	}
	k.lookups += len(r.Visits)
	k.last, k.met = r.Visits[len(r.Visits)-1].Table, r.Met
	k.noteMegaflow(r)
	if r.Drop.Reason != telemetry.NotDropped {
		k.table, k.entry = r.Drop.Table, r.Drop.Entry
		k.drop(r.Drop.Reason)
	}
	k.table, k.entry = r.End.Table, r.End.Entry
	k.depth += r.Depth // walkTable restores it
	if len(r.End.Rest) > 0 {
		return k.run(r.End.Rest)
	}
	return r.End.Next
}
