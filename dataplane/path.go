package dataplane

import (
	"slices"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/flowcache"
	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/dataplane/program"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

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

// Credit counts packets, the last of which came at now, for a path's entries, tables and
// groups. Any goroutine may call it.
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
