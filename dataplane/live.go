package dataplane

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/ports"
)

// Live traces: the walks of real packets. A packet that a live trace wants walks every
// table, whatever the exact-match cache remembers of it, and is watched on the way. It is
// counted, tracked and sent as it would have been.
//
//	live.go      arming a trace, and taking its walks
//	livewalk.go  a packet that is wanted, from its port to the ring
//
// What passes in the kernel is not seen here. So a live trace that begins takes the
// offload entries back whose packets it wants, and none like them is made while it lasts.
// What most filters ask for is in an offload entry's key; a filter that asks for more
// takes all entries back.
//
// Without a live trace a worker reads one pointer per batch. With one, the worker's own
// goroutine checks packets as they enter, and only those that are wanted cost more. A
// packet that the exact-match cache knows is checked once, and the answer holds for those
// like it. Of each trace a worker has a ring of liveRoom walks. While it is full, packets
// take their usual way, and are counted as missed by the trace.
//
// A walk's id goes with a packet through the tunnel, beside it. The switch at the other
// end watches packets whose id is of one of its own live traces' sessions. So two halves
// of a walk are found together.

const (
	// mostLives is how many live traces there may be at once.
	mostLives = 8
	// liveRoom is how many walks of a worker wait to be taken.
	liveRoom = 256
)

// LiveRequest says which packets to watch.
type LiveRequest struct {
	// Match says whether a frame that enters by a port is wanted; with nil only
	// ids are. Workers call it, several at once. It must not keep or change the
	// bytes. Of a connection in the kernel it gets headers without payload.
	Match func(frame []byte, inPort uint32) bool
	// Deep says that Match asks for more than addresses, protocols, ports and TCP
	// flags: every connection is taken back from the kernel then.
	Deep bool
	// Keep says of a walk that is over whether it is still wanted; nil keeps all.
	// Workers call it as they do Match.
	Keep func(*telemetry.Trace) bool
	// Tables are those at whose entrance the packet's bytes are kept.
	Tables []uint8
	// Count ends the trace after so many walks; 0 for no end.
	Count int
	// Begin is how many walks may begin here; 0 for no end. Packets that bring an id of
	// the session are watched beyond it.
	Begin int
	// Wait is how long no walk begins here, so that other switches can be armed meanwhile.
	// Packets that bring an id of the session are watched at once. Those that came through
	// the tunnel without one wait twice as long, because they have passed a switch that
	// did not begin yet. They begin no walk when a switch that did has begun enough.
	Wait time.Duration
	// FirstID is the id of the first walk; the next ones count up. Its upper half
	// is the session: packets of other switches that bring an id of it are watched
	// too. When 0, walks are numbered from 1 and no id leaves the switch.
	FirstID uint64
}

// LiveTrace is a live trace under way. Next is for one goroutine.
type LiveTrace struct {
	sw    *Switch
	req   LiveRequest
	walks chan watched
	rings []atomic.Int32 // walks that wait, by worker; the last are packet-outs'
	ids   atomic.Uint64
	taken int // by Next

	matched, told, missed atomic.Uint64
	begun                 atomic.Uint64 // walks that were told and did not begin elsewhere

	armed    time.Time
	waiting  atomic.Bool // Wait is not over for all packets
	othersDo atomic.Bool // another switch has begun as many walks as are to begin
}

// watched is a walk on its way to who wants it.
type watched struct {
	trace  *telemetry.Trace
	worker int
}

// errManyLives is for one more than mostLives.
var errManyLives = errors.New("there are 8 live traces already; end one of them first")

// TraceLive begins a live trace. Packets that enter from now on are watched,
// those of connections in the kernel too. It is to be closed.
func (s *Switch) TraceLive(req LiveRequest) (*LiveTrace, error) {
	l := &LiveTrace{sw: s, req: req, walks: make(chan watched, liveRoom*(len(s.workers)+1)), rings: make([]atomic.Int32, len(s.workers)+1)}
	l.ids.Store(max(1, req.FirstID))
	l.armed = time.Now()
	l.waiting.Store(req.Wait > 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.lives.Load().list()
	if len(all) == mostLives {
		return nil, errManyLives
	}
	s.arm(append(slices.Clone(all), l))
	if l.req.Match != nil {
		s.offload.TakeBack(l.wantsKey)
	}
	return l, nil
}

// Next waits for a walk. The error is ctx's, or io.EOF after Count walks.
func (l *LiveTrace) Next(ctx context.Context) (*telemetry.Trace, error) {
	if l.req.Count > 0 && l.taken == l.req.Count {
		return nil, io.EOF
	}
	select {
	case w := <-l.walks:
		l.rings[w.worker].Add(-1)
		l.taken++
		return w.trace, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Counts tells how much was seen until now.
func (l *LiveTrace) Counts() telemetry.LiveCounts {
	told, missed := l.told.Load(), l.missed.Load() // first: those that match meanwhile are in neither
	if l.req.Count > 0 {
		told = min(told, uint64(l.req.Count)) // workers that end walks together count more
	}
	return telemetry.LiveCounts{Matched: l.matched.Load(), Told: told, Missed: missed}
}

// Close ends the trace. Packets of connections that it took back may pass in the
// kernel again.
func (l *LiveTrace) Close() {
	s := l.sw
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arm(slices.DeleteFunc(slices.Clone(s.lives.Load().list()), func(o *LiveTrace) bool { return o == l }))
}

// arm has workers ask some live traces from now on. s.mu is held.
func (s *Switch) arm(all []*LiveTrace) {
	if len(all) == 0 {
		s.lives.Store(nil)
		return
	}
	deep := slices.ContainsFunc(all, func(l *LiveTrace) bool { return l.req.Deep })
	s.lives.Store(&liveSet{all: all, no: uint16(s.armed%liveNumbers) + 1, round: s.armed / liveNumbers, deep: deep})
	s.armed++
}

// liveSet is the live traces of a switch; it never changes.
type liveSet struct {
	all   []*LiveTrace
	no    uint16 // 1 to liveNumbers, one after the other
	round uint64 // how often numbers have begun anew
	deep  bool   // one of them asks for more than a signature tells
}

// liveNumbers is how many sets have numbers of their own before they come again.
const liveNumbers = 1<<16 - 1

// list is the traces of a set, none of none.
func (s *liveSet) list() []*LiveTrace {
	if s == nil {
		return nil
	}
	return s.all
}

// wantsKey says whether any trace of the set wants packets of an offload entry.
func (s *liveSet) wantsKey(key *ports.OffloadKey, inPort uint32) bool {
	for _, l := range s.list() {
		if l.wantsKey(key, inPort) {
			return true
		}
	}
	return false
}

// wantsKey says whether the trace may want packets of an offload entry.
func (l *LiveTrace) wantsKey(key *ports.OffloadKey, inPort uint32) bool {
	return l.req.Match != nil && (l.req.Deep || l.req.Match(flowcache.FrameOfKey(key), inPort))
}
