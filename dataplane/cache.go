package dataplane

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// cache is a worker's exact-match cache. It has the walks (package flowcache), the parts that
// walks have in common (path), and the state that they depend on.
//
// A packet is replayed (replay.go) if all of these hold:
//
//  1. It has the signature of a remembered walk.
//  2. The pipeline and the ports are those of the walk.
//  3. Conntrack gives the same answers.
//
// A replay advances windows and timeouts, rewrites headers and credits entries. The packet leaves
// without a lookup.
//
// A walk depends on its packet's signature and on these:
//
//	pipeline, groups, ports   compared by pointer; a change empties the cache
//	learned entries           their number of changes, for walks that could meet one
//	connections               conntrack checks them for each packet (conntrack.Pass)
//	meters, NORMAL's table, a copy of the packet, a learn action, a packet-in,
//	a fragment that waits     a walk with one of these is not cached (note.go)
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
	past    []*path           // earlier paths, with packets not yet credited to entries
	listing sync.Mutex        // for paths, which only the worker changes, and for past

	pass    conntrack.Passing
	warming flowcache.Warming
	totals  cacheTotals
}

// cacheTotals is a worker's cache counters that other goroutines read.
type cacheTotals struct {
	entries, paths, room atomic.Uint64
	flowcache.Counts
}

// defaultCache is the maximal number of entries in a worker's cache: 80 MB.
const defaultCache = 1 << 18

// newCache makes a cache that grows to at most a number of entries.
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

// forget drops all entries and paths. The caller calls endBatch first.
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

// full says that there are too many paths. The cache must then be emptied.
func (c *cache) full() bool { return len(c.paths) > c.Most()/pathShare }

// crowded says that the paths exceed half of their limit. Each endpoint of a Service has one, so
// paths of Services leave room for others.
func (c *cache) crowded() bool { return 2*len(c.paths) > c.Most()/pathShare }

// warmNew is how many first packets a port's batch must have had. Then the port's next batch is
// warmed for first packets too.
const warmNew = 8

// warm reads what the packets of a batch from a port will need.
func (c *cache) warm(frames []*packet.Frame, p *polled, ct *conntrack.Table) {
	if c != nil {
		c.Warm(&c.warming, frames, p.no, p.firsts >= warmNew, ct)
	}
}

// firsts returns how many packets of the batch were the first of their connection or of their
// kind.
func (c *cache) firsts() uint64 {
	if c == nil {
		return 0
	}
	return c.Firsts()
}

// endBatch publishes the packets that paths counted in this batch.
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

// publish adds the batch's counts to the totals that other goroutines read.
func (c *cache) publish() {
	t := &c.totals
	t.Move(&c.Count)
	if c.Changed() {
		t.entries.Store(uint64(c.Live()))
		t.paths.Store(uint64(len(c.paths)))
		t.room.Store(uint64(c.Room()))
	}
}

// path is the common part of all connections with the same walk: the tables and entries, the
// groups, and the verdict. It counts their packets. Once per batch the sum goes to pending, and
// from there to the entries when somebody reads their counters.
type path struct {
	visits  []flowcache.Visit
	groups  []*program.BucketCounters
	out     *switchPort // nil for a drop
	tunnel  packet.Tunnel
	mark    uint32
	drop    telemetry.Drop // of a drop
	last    uint8          // table looked up last
	met     *flow.Entry    // the entry that this lookup found
	learned uint64         // changes of learned entries when recorded, if it could meet one; else 0

	packets, bytes uint64 // of this batch
	pending        *flowcache.Pending

	begins conntrack.Request // of first packets: the ct() that begins their connections
}

// equal says whether two paths are the same apart from their packets.
func (p *path) equal(q *path) bool {
	return p.out == q.out && p.tunnel == q.tunnel && p.mark == q.mark && p.drop == q.drop &&
		p.last == q.last && p.learned == q.learned && p.begins == q.begins && slices.Equal(p.visits, q.visits) && slices.Equal(p.groups, q.groups)
}

// hash is over the entries met. They differ for nearly all different paths.
func (p *path) hash() uint64 {
	h := flowcache.HashVisits(p.visits, lookup.Mix(lookup.Seed, p.learned))
	if p.out != nil {
		h = lookup.Mix(h, uint64(p.out.no)+1)
	}
	return h
}

// intern is the index of the path equal to p. If there is none, it keeps a copy of p.
func (c *cache) intern(p *path) uint32 {
	h := p.hash()
	i, ok := c.byHash[h]
	if ok && c.paths[i].equal(p) {
		return i
	}
	kept := *p
	kept.visits, kept.groups, kept.pending = slices.Clone(p.visits), slices.Clone(p.groups), new(flowcache.Pending)
	i = uint32(len(c.paths))
	c.listing.Lock()
	c.paths = append(c.paths, &kept)
	c.listing.Unlock()
	c.byHash[h] = i
	return i
}

// count counts a replayed packet for a path.
func (c *cache) count(p *path, size int) {
	if p.packets == 0 {
		c.fresh = append(c.fresh, p)
	}
	p.packets++
	p.bytes += uint64(size)
}

// Credit counts packets for a path's entries, tables and groups. The last of them came at
// now. Any goroutine may call it.
func (p *path) Credit(packets, bytes uint64, now int64) {
	flowcache.Credit(p.visits, packets, bytes, now)
	for _, g := range p.groups {
		g.Packets.Add(packets)
		g.Bytes.Add(bytes)
	}
}

// creditAll credits the packets of the paths to entries, tables and groups. Any goroutine may
// call it, one at a time (Switch.creditNow).
func (c *cache) creditAll() {
	c.listing.Lock()
	paths, past := c.paths, c.past
	c.past = nil
	c.listing.Unlock()
	for _, list := range [][]*path{past, paths} {
		for _, p := range list {
			p.pending.Take(p.Credit)
		}
	}
}
