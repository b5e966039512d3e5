package dataplane

import (
	"slices"
	"time"

	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// asking is a walk's state while it checks its packet against live traces.
type asking struct {
	set  *liveSet // nil without live traces
	done bool     // the packet was checked
	who  uint8    // traces that watch the packet, as bits
}

// serve walks a batch while there are live traces.
func (s *liveSet) serve(w *worker, frames []*packet.Frame, inPort uint32) {
	k := &w.walk
	w.cache.hear(s, w)
	for _, f := range frames {
		k.lives = asking{set: s}
		if k.replay(f, inPort) == replayed {
			continue
		}
		if !k.lives.done {
			k.wanted(nil, f, inPort)
		}
		who := k.lives.who
		k.lives = asking{} // frames that this walk resumes are other packets
		if who != 0 {
			k.watch(s, who, f, inPort)
		} else {
			k.enter(f, inPort)
		}
	}
	k.lives = asking{}
}

// wanted says whether a live trace watches a frame. e is the frame's cache entry, or nil. A
// negative answer is cached in e for all its packets. Exceptions are a trace that tests more than
// a signature has, and a frame with an id.
func (k *walk) wanted(e *flowcache.Entry, f *packet.Frame, inPort uint32) bool {
	s := k.lives.set
	k.lives.done = true
	if e != nil && e.Unwanted == s.no && f.Tunnel.Trace == 0 {
		return false
	}
	who := s.wanting(f, inPort)
	if who == 0 && e != nil && !s.deep && f.Tunnel.Trace == 0 && !s.waits() {
		e.Unwanted = s.no
	}
	k.lives.who = s.reserveWalks(who, k.w.no)
	if k.lives.who != 0 && e != nil {
		e.SinceOffer, e.Offers = 0, 0 // the restored offload entry is offered again like a first one
	}
	return k.lives.who != 0
}

// hear empties the cache when the numbers of live sets begin again, because a number then means
// another set.
func (c *cache) hear(s *liveSet, w *worker) {
	if c == nil || c.heard == s.round {
		return
	}
	c.heard = s.round
	c.endBatch(w)
	c.forget()
}

// wanting is the set's traces that want a frame, as bits.
func (s *liveSet) wanting(f *packet.Frame, inPort uint32) (who uint8) {
	for i, l := range s.all {
		if l.wants(f, inPort) {
			who |= 1 << i
		}
	}
	return who
}

// reserveWalks reserves a walk of a worker in each trace of who. It returns those that had room.
func (s *liveSet) reserveWalks(who uint8, worker int) uint8 {
	for i, l := range s.all {
		if who>>i&1 != 0 && !l.reserveWalk(worker) {
			who &^= 1 << i
		}
	}
	return who
}

// wants says whether the trace wants a frame and still needs walks.
func (l *LiveTrace) wants(f *packet.Frame, inPort uint32) bool {
	if l.done() {
		return false
	}
	return l.follows(f) || !l.enough() && l.req.Match != nil && l.due(f) && l.req.Match(f.Bytes(), inPort)
}

// due says whether a walk may begin with a frame, by Wait and by other switches' walks.
func (l *LiveTrace) due(f *packet.Frame) bool {
	tunnelled := f.Tunnel.Src.IsValid()
	if tunnelled && l.othersDo.Load() {
		return false
	}
	if !l.waiting.Load() {
		return true
	}
	waited := time.Since(l.armed)
	if waited >= 2*l.req.Wait {
		l.waiting.Store(false)
		return true
	}
	return !tunnelled && waited >= l.req.Wait
}

// waits says whether a trace of the set may later want frames that it does not want yet.
func (s *liveSet) waits() bool {
	return slices.ContainsFunc(s.all, func(l *LiveTrace) bool { return l.waiting.Load() })
}

// done says whether the trace has Count walks.
func (l *LiveTrace) done() bool { return l.req.Count > 0 && l.told.Load() >= uint64(l.req.Count) }

// enough says whether the trace has begun Begin walks here.
func (l *LiveTrace) enough() bool { return l.req.Begin > 0 && l.begun.Load() >= uint64(l.req.Begin) }

// follows says whether a frame brings an id of the trace's session.
func (l *LiveTrace) follows(f *packet.Frame) bool {
	id := f.Tunnel.Trace
	if id == 0 || l.req.FirstID == 0 || id>>32 != l.req.FirstID>>32 {
		return false
	}
	if l.req.Begin > 0 && id&walkNumber >= uint64(l.req.Begin) {
		l.othersDo.Store(true)
	}
	return true
}

// walkNumber is the part of an id that counts the walks of one switch, from 1. The bits above it
// are the switch's own number and the session.
const walkNumber = 1<<24 - 1

// reserveWalk counts a packet, and reserves a place in a worker's ring for its walk. It returns
// false if there is none.
func (l *LiveTrace) reserveWalk(worker int) bool {
	l.matched.Add(1)
	if l.rings[worker].Add(1) > liveRoom {
		l.rings[worker].Add(-1)
		l.missed.Add(1)
		return false
	}
	return true
}

// end puts a walk into the ring. If the walk turns out not to be wanted, end returns its place.
func (l *LiveTrace) end(t *telemetry.Trace, worker int) {
	if l.req.Keep != nil && !l.req.Keep(t) || l.req.Count > 0 && l.told.Add(1) > uint64(l.req.Count) {
		l.rings[worker].Add(-1)
		return
	}
	if l.req.Count == 0 {
		l.told.Add(1)
	}
	if !t.Live.Followed && !t.Live.Resumed {
		l.begun.Add(1)
	}
	l.walks <- watched{t, worker} // does not block: the place is reserved
}

// liveID is the traces that watch a paused walk, and its id.
type liveID struct {
	set *liveSet // nil without live traces
	who uint8
	id  uint64
}

// watch walks a frame that some traces of a set want.
func (k *walk) watch(s *liveSet, who uint8, f *packet.Frame, inPort uint32) {
	k.trace = newLiveTracer(s, who, f, inPort)
	k.enter(f, inPort)
}

// watchPacketOut begins to watch a packet-out, if a live trace wants it.
func (k *walk) watchPacketOut() {
	s := k.w.sw.lives.Load()
	if s == nil {
		return
	}
	if who := s.reserveWalks(s.wanting(k.frame, k.inPort), k.w.no); who != 0 {
		k.trace = newLiveTracer(s, who, k.frame, k.inPort)
		k.noteStart()
	}
}

func newLiveTracer(s *liveSet, who uint8, f *packet.Frame, inPort uint32) *tracer {
	a := &telemetry.Arrival{Time: time.Now(), Port: inPort, Len: f.Len(), Offload: f.Offload, Tunnel: f.Tunnel, Mark: f.Mark}
	a.Frame = append(a.Frame, f.Bytes()[:min(f.Len(), telemetry.SnapLen)]...)
	t := &tracer{live: who, set: s, out: &telemetry.Trace{Live: a, Steps: make([]telemetry.Step, 0, 64)}}
	first := t.first()
	if a.Followed = first.follows(f); a.Followed {
		a.ID = f.Tunnel.Trace
	} else {
		a.ID = first.ids.Add(1) - 1
	}
	return t
}

// first is the first of the traces that want the walk.
func (t *tracer) first() *LiveTrace {
	for i, l := range t.set.all {
		if t.live>>i&1 != 0 {
			return l
		}
	}
	return nil
}

// keepsAt says whether a trace of the walk keeps the packet's bytes at the entrance of a table.
func (t *tracer) keepsAt(table uint8) bool {
	for i, l := range t.set.list() {
		if t.live>>i&1 != 0 && slices.Contains(l.req.Tables, table) {
			return true
		}
	}
	return false
}

// liveID is what remains of a tracer while its walk pauses.
func (t *tracer) liveID() liveID {
	if t == nil || t.out.Live == nil {
		return liveID{}
	}
	return liveID{t.set, t.live, t.out.Live.ID}
}

// carried is the id that goes through the tunnel with the packet; 0 for none.
func (t *tracer) carried() uint64 {
	if t == nil || t.out.Live == nil || t.first().req.FirstID == 0 {
		return 0
	}
	return t.out.Live.ID
}

// rewatch continues to watch a walk that paused.
func (k *walk) rewatch(p *paused) {
	if p.live.set == nil {
		return
	}
	who := p.live.who
	for i, l := range p.live.set.all {
		if l.done() {
			who &^= 1 << i
		}
	}
	if who = p.live.set.reserveWalks(who, k.w.no); who == 0 {
		return
	}
	k.trace = newLiveTracer(p.live.set, who, k.frame, p.inPort)
	k.trace.out.Live.ID, k.trace.out.Live.Resumed = p.live.id, true
	k.trace.out.Start = k.key
}

// tellLive ends the watching of a finished walk, and gives the walk to its traces.
func (k *walk) tellLive() {
	t := k.trace
	k.trace = nil
	t.settle(k)
	if k.prog != nil {
		t.out.Names = k.prog.Names
	}
	t.finish(k)
	for i, l := range t.set.all {
		if t.live>>i&1 != 0 {
			l.end(t.out, k.w.no)
		}
	}
}
