package dataplane

import (
	"time"

	"github.com/antrail/antrail/packet"
)

// serve walks a batch while there are live traces.
func (s *liveSet) serve(w *worker, frames []*packet.Frame, inPort uint32) {
	for _, f := range frames {
		if who := s.wanting(w, f, inPort); who != 0 {
			w.walk.watch(s, who, f, inPort)
		} else {
			w.walk.packet(f, inPort)
		}
	}
}

// wanting is the set's traces that want a frame and have room, as bits.
func (s *liveSet) wanting(w *worker, f *packet.Frame, inPort uint32) (who uint8) {
	for i, l := range s.all {
		if l.wants(f, inPort) && l.begin(w.no) {
			who |= 1 << i
		}
	}
	return who
}

// wants says whether the trace looks for a frame, and has not enough yet.
func (l *LiveTrace) wants(f *packet.Frame, inPort uint32) bool {
	if l.done() {
		return false
	}
	return l.follows(f) || l.req.Match != nil && l.req.Match(f.Bytes(), inPort)
}

// done says whether there are as many walks as were asked for.
func (l *LiveTrace) done() bool { return l.req.Count > 0 && l.told.Load() >= uint64(l.req.Count) }

// follows says whether a frame brings an id of the trace's session.
func (l *LiveTrace) follows(f *packet.Frame) bool {
	id := f.Tunnel.Trace
	return id != 0 && l.req.FirstID != 0 && id>>32 == l.req.FirstID>>32
}

// begin counts a packet, and takes a place of a worker's ring for its walk; false
// when there is none.
func (l *LiveTrace) begin(worker int) bool {
	l.matched.Add(1)
	if l.rings[worker].Add(1) > liveRoom {
		l.rings[worker].Add(-1)
		l.lost.Add(1)
		return false
	}
	return true
}

// end puts a walk into the ring, or gives its place back when it is not wanted
// after all.
func (l *LiveTrace) end(t *Trace, worker int) {
	if l.req.Keep != nil && !l.req.Keep(t) || l.req.Count > 0 && l.told.Add(1) > uint64(l.req.Count) {
		l.rings[worker].Add(-1)
		return
	}
	if l.req.Count == 0 {
		l.told.Add(1)
	}
	l.walks <- watched{t, worker} // a place of the ring is its own
}

// liveID is who watches a walk that pauses, and as what.
type liveID struct {
	set *liveSet // nil for nobody
	who uint8
	id  uint64
}

// watch walks a frame that some traces of a set want.
func (k *walk) watch(s *liveSet, who uint8, f *packet.Frame, inPort uint32) {
	k.trace = newLiveTracer(s, who, f, inPort)
	k.enter(f, inPort)
}

func newLiveTracer(s *liveSet, who uint8, f *packet.Frame, inPort uint32) *tracer {
	a := &Arrival{Time: time.Now(), Port: inPort, Len: f.Len(), Offload: f.Offload, Tunnel: f.Tunnel, Mark: f.Mark}
	a.Frame = append(a.Frame, f.Bytes()[:min(f.Len(), snapLen)]...)
	t := &tracer{live: who, set: s, out: &Trace{Live: a, Steps: make([]Step, 0, 64)}}
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

// liveID is what remains of a tracer while its walk pauses.
func (t *tracer) liveID() liveID {
	if t == nil || t.out.Live == nil {
		return liveID{}
	}
	return liveID{t.set, t.live, t.out.Live.ID}
}

// carried is the id that goes through the tunnel with the packet, 0 for none.
func (t *tracer) carried() uint64 {
	if t == nil || t.out.Live == nil || t.first().req.FirstID == 0 {
		return 0
	}
	return t.out.Live.ID
}

// rewatch goes on watching a walk that paused.
func (k *walk) rewatch(p *paused) {
	if p.live.set == nil {
		return
	}
	who := uint8(0)
	for i, l := range p.live.set.all {
		if p.live.who>>i&1 != 0 && !l.done() && l.begin(k.w.no) {
			who |= 1 << i
		}
	}
	if who == 0 {
		return
	}
	k.trace = newLiveTracer(p.live.set, who, k.frame, p.inPort)
	k.trace.out.Live.ID, k.trace.out.Live.Resumed = p.live.id, true
	k.trace.out.Start = k.key
}

// tellLive ends the watch over a walk that is done.
func (k *walk) tellLive() {
	t := k.trace
	k.trace = nil
	t.settle(k)
	if k.prog != nil {
		t.out.Names = k.prog.names
	}
	t.finish(k)
	for i, l := range t.set.all {
		if t.live>>i&1 != 0 {
			l.end(t.out, k.w.no)
		}
	}
}
