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

// cache is a worker's exact-match cache: which walks it remembers (package flowcache),
// what they had in common (path), and until when they hold. A packet is replayed
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

// path is what all connections have in common that were walked alike: the tables and
// entries, the groups, and the verdict. Its packets are counted here. Once per batch the
// sum goes to pending, and from there to the entries when somebody reads their counters.
type path struct {
	visits  []flowcache.Visit
	groups  []*program.BucketCounters
	out     *switchPort // nil for a drop
	tunnel  packet.Tunnel
	mark    uint32
	drop    telemetry.Drop // of a drop
	last    uint8          // table looked up last
	met     *flow.Entry    // what that lookup gave
	learned uint64         // changes of learned entries when recorded, if it could meet one; else 0

	packets, bytes uint64 // of this batch
	pending        *flowcache.Pending

	begins conntrack.Request // of first packets: the ct() that begins their connections
}

// equal says whether two paths are the same but for their packets.
func (p *path) equal(q *path) bool {
	return p.out == q.out && p.tunnel == q.tunnel && p.mark == q.mark && p.drop == q.drop &&
		p.last == q.last && p.learned == q.learned && p.begins == q.begins && slices.Equal(p.visits, q.visits) && slices.Equal(p.groups, q.groups)
}

// hash is over the entries met, which nearly tell paths apart.
func (p *path) hash() uint64 {
	h := flowcache.HashVisits(p.visits, lookup.Mix(lookup.Seed, p.learned))
	if p.out != nil {
		h = lookup.Mix(h, uint64(p.out.no)+1)
	}
	return h
}

// intern is the index of the path equal to p, of which a copy is kept when there
// is none yet.
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

// creditAll takes what the paths counted to entries, tables and groups. Any goroutine
// may call it, one at a time (Switch.creditNow).
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
