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

// Live traces watch the walks of real packets. A packet that a live trace wants walks every
// table, whatever the exact-match cache has for it. It is counted, tracked and sent as without
// the trace.
//
//	live.go      starting a trace, and reading its walks
//	livewalk.go  a wanted packet, from its port to the ring
//
// The switch does not see packets that the kernel forwards. So a live trace restores the offload
// entries whose packets it wants, and prevents new ones like them while it lasts. Most filters
// test only fields of an offload entry's key. A filter that tests more restores all entries.
//
// Without a live trace a worker reads one pointer per batch. With one, the worker's own goroutine
// checks packets as they enter, and only wanted packets cost more. A packet in the exact-match
// cache is checked once, and the answer holds for all packets of its entry. Each trace has a ring
// of liveRoom walks for each worker. While the ring is full, packets take their usual way, and
// the trace counts them as missed.
//
// A walk's id goes through the tunnel beside the packet. The switch at the other end watches a
// packet if the id belongs to a session of one of its own live traces. So a reader can join the
// two halves of a walk.

const (
	// mostLives is how many live traces there may be at once.
	mostLives = 8
	// liveRoom is how many walks of a worker wait to be read.
	liveRoom = 256
)

// LiveRequest says which packets to watch.
type LiveRequest struct {
	// Match says whether a live trace wants a frame that enters by a port. If it is nil, the
	// trace wants only ids. Several workers call it at once. It must not keep or change the
	// bytes. For a connection in the kernel it gets headers without payload.
	Match func(frame []byte, inPort uint32) bool
	// Deep says that Match tests more than addresses, protocols, ports and TCP flags. Then every
	// connection is restored from the kernel.
	Deep bool
	// Keep says whether a finished walk is still wanted; nil keeps all. Several workers call it
	// at once.
	Keep func(*telemetry.Trace) bool
	// Tables are the tables at whose entrance the trace keeps the packet's bytes.
	Tables []uint8
	// Count ends the trace after that many walks; 0 for no end.
	Count int
	// Begin is how many walks may begin here; 0 for any number. The trace also watches packets
	// that bring an id of the session, beyond this number.
	Begin int
	// Wait is how long no walk begins here, so that a caller can start other switches' traces
	// meanwhile. The trace watches packets with an id of the session at once.
	//
	// Packets from the tunnel without an id wait twice as long, because they have passed a switch
	// that had not begun yet. They begin no walk once another switch has begun Begin walks.
	Wait time.Duration
	// FirstID is the id of the first walk; the next ones count up. Its upper half is the session:
	// the trace also watches packets of other switches with an id of that session. If FirstID is
	// 0, walks are numbered from 1 and no id leaves the switch.
	FirstID uint64
}

// LiveTrace is a running live trace. Only one goroutine may call Next.
type LiveTrace struct {
	sw    *Switch
	req   LiveRequest
	walks chan watched
	rings []atomic.Int32 // walks that wait, by worker; the last ring is for packet-outs
	ids   atomic.Uint64
	taken int // walks that Next returned

	matched, told, missed atomic.Uint64
	begun                 atomic.Uint64 // walks put into the ring that began here

	armed    time.Time
	waiting  atomic.Bool // Wait is not over for all packets
	othersDo atomic.Bool // another switch has begun Begin walks
}

// watched is a finished walk on its way to the reader.
type watched struct {
	trace  *telemetry.Trace
	worker int
}

// errManyLives refuses a trace beyond mostLives.
var errManyLives = errors.New("there are 8 live traces already; end one of them first")

// TraceLive starts a live trace. It watches packets that enter from now on, those of connections
// in the kernel included. The caller must close it.
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

// Counts returns how many packets matched, how many walks were put into the ring, and how many
// packets were missed.
func (l *LiveTrace) Counts() telemetry.LiveCounts {
	told, missed := l.told.Load(), l.missed.Load() // loaded first: packets that match meanwhile are in neither
	if l.req.Count > 0 {
		told = min(told, uint64(l.req.Count)) // workers that end walks together count more
	}
	return telemetry.LiveCounts{Matched: l.matched.Load(), Told: told, Missed: missed}
}

// Close ends the trace. The kernel may again forward the connections that the trace restored.
func (l *LiveTrace) Close() {
	s := l.sw
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arm(slices.DeleteFunc(slices.Clone(s.lives.Load().list()), func(o *LiveTrace) bool { return o == l }))
}

// arm makes workers check packets for a set of live traces from now on. The caller holds s.mu.
func (s *Switch) arm(all []*LiveTrace) {
	if len(all) == 0 {
		s.lives.Store(nil)
		return
	}
	deep := slices.ContainsFunc(all, func(l *LiveTrace) bool { return l.req.Deep })
	s.lives.Store(&liveSet{all: all, no: uint16(s.armed%liveNumbers) + 1, round: s.armed / liveNumbers, deep: deep})
	s.armed++
}

// liveSet is the live traces of a switch. It is immutable.
type liveSet struct {
	all   []*LiveTrace
	no    uint16 // 1 to liveNumbers, then 1 again
	round uint64 // how often numbers began again at 1
	deep  bool   // one trace tests more than a signature has
}

// liveNumbers is how many sets have different numbers before a number repeats.
const liveNumbers = 1<<16 - 1

// list is the traces of a set; a nil set has none.
func (s *liveSet) list() []*LiveTrace {
	if s == nil {
		return nil
	}
	return s.all
}

// wantsKey says whether any trace of the set may want packets of an offload entry.
func (s *liveSet) wantsKey(key *ports.OffloadKey, inPort uint32) bool {
	return slices.ContainsFunc(s.list(), func(l *LiveTrace) bool { return l.wantsKey(key, inPort) })
}

// wantsKey says whether the trace may want packets of an offload entry.
func (l *LiveTrace) wantsKey(key *ports.OffloadKey, inPort uint32) bool {
	return l.req.Match != nil && (l.req.Deep || l.req.Match(flowcache.FrameOfKey(key), inPort))
}
