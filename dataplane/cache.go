package dataplane

import (
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// cache is a worker's exact-match cache: which walks it remembers (package flowcache),
// what they had in common (path.go), and until when they hold. A packet is replayed
// (replay.go) if it shows the signature of a walk, under the same pipeline and ports.
// Conntrack must give the same answers. Then windows and timeouts move, headers are
// rewritten and entries are credited. The packet leaves without a lookup.
//
// A walk depends on its packet's signature and on these:
//
//	pipeline, groups, ports   compared by pointer; another one empties the cache
//	learned entries           their number of changes, for walks that could meet one
//	connections               asked again for each packet (conntrack.Pass)
//	meters, NORMAL's table, a copy of the packet, a learn action, a packet-in,
//	a fragment that waits     such a walk is not remembered (note.go)
//
// Each worker has its own cache: no lock, no atomic write.
type cache struct {
	flowcache.Exact
	prog     *program.Program
	ports    *portSet
	learners uint64
	heard    uint64 // the round of live traces' numbers (livewalk.go)

	paths   []*path
	byHash  map[uint64]uint32 // index into paths
	fresh   []*path           // paths with packets of this batch
	past    []*path           // earlier paths, with packets that entries do not know
	listing sync.Mutex        // for paths, which only the worker changes, and past

	pass    conntrack.Passing
	warming flowcache.Warming
	totals  cacheTotals
}

// cacheTotals is what others see of a worker's cache.
type cacheTotals struct {
	entries, paths, room atomic.Uint64
	flowcache.Counts
}

// defaultCache is the entries of a worker's cache when it is full: 80 MB.
const defaultCache = 1 << 18

// newCache makes a cache that may grow to a number of entries.
func newCache(most int) *cache {
	return &cache{Exact: flowcache.MakeExact(most), byHash: map[uint64]uint32{}}
}

// keepUp empties the cache if the pipeline or the ports have changed.
func (c *cache) keepUp(prog *program.Program, w *worker) {
	ports, learners := w.sw.ports.Load(), w.sw.learners.Load()
	if c.prog == prog && c.ports == ports && c.learners == learners {
		return
	}
	c.Count[telemetry.CacheFlushed] += uint64(c.Live())
	c.endBatch(w)
	c.prog, c.ports, c.learners, c.Sig.Labels = prog, ports, learners, prog.UsesFlowLabel
	c.forget()
}

// forget drops all entries and paths. endBatch must come before.
func (c *cache) forget() {
	c.Clear()
	c.listing.Lock()
	for _, p := range c.paths {
		if p.pending.Any() {
			c.past = append(c.past, p)
		}
	}
	c.paths = nil // not cleared: creditAll may still read the old list
	c.listing.Unlock()
	clear(c.byHash)
}

// pathShare is how many entries there may be for each path.
const pathShare = 4

// full says that there are too many paths: the cache begins again.
func (c *cache) full() bool { return len(c.paths) > c.Most()/pathShare }

// crowded says that half of the paths that there may be are there. Each endpoint of a
// Service has one, so those of Services leave room for others.
func (c *cache) crowded() bool { return 2*len(c.paths) > c.Most()/pathShare }

// warmNew is how many first packets a port's batch must have had for its next one to be
// warmed for first packets.
const warmNew = 8

// warm reads what the packets of a batch from a port will need.
func (c *cache) warm(frames []*packet.Frame, p *polled, ct *conntrack.Table) {
	if c != nil {
		c.Warm(&c.warming, frames, p.no, p.firsts >= warmNew, ct)
	}
}

// firsts returns how many packets of the batch were the first of their connection, or of
// their kind.
func (c *cache) firsts() uint64 {
	if c == nil {
		return 0
	}
	return c.Firsts()
}

// endBatch shows others what the paths counted in this batch.
func (c *cache) endBatch(w *worker) {
	for _, p := range c.fresh {
		p.pending.Add(p.packets, p.bytes, w.now)
		if p.out == nil {
			w.drops[p.drop.Table][p.drop.Reason].Add(p.packets)
		}
		p.packets, p.bytes = 0, 0
	}
	clear(c.fresh)
	c.fresh = c.fresh[:0]
	c.EndBatch()
}

// publish adds the batch's counts to what others see.
func (c *cache) publish() {
	t := &c.totals
	t.Move(&c.Count)
	if c.Changed() {
		t.entries.Store(uint64(c.Live()))
		t.paths.Store(uint64(len(c.paths)))
		t.room.Store(uint64(c.Room()))
	}
}
