package dataplane

import (
	"slices"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// path is what all connections have in common that were walked alike: the
// tables and entries, groups, and how it ended. Packets are counted here, once per
// batch where others see it (sum), and told to the entries when somebody asks.
type path struct {
	visits  []visited
	groups  []*bucketCounters
	out     *switchPort // nil for a drop
	tunnel  packet.Tunnel
	mark    uint32
	loss    loss        // of a drop
	last    uint8       // table looked up last
	met     *flow.Entry // what that lookup gave
	learned uint64      // changes of learned entries when recorded, if it could meet one; else 0

	packets, bytes uint64 // of this batch
	sum            *owed

	begins conntrack.Request // of an opening that begins connections
}

// owed is what packets of a path, or of a stretch, counted that the entries do not
// know yet.
type owed struct {
	packets, bytes atomic.Uint64
	used           atomic.Int64 // clock of the last batch
}

// add adds what a batch counted.
func (o *owed) add(packets, bytes uint64, now int64) {
	o.bytes.Add(bytes)
	o.used.Store(now)
	o.packets.Add(packets) // last: who finds some finds the rest of them too
}

// take gives f what is owed, if anything is. Whoever comes second finds nothing.
func (o *owed) take(f func(packets, bytes uint64, now int64)) {
	if o.packets.Load() == 0 {
		return
	}
	if packets := o.packets.Swap(0); packets != 0 {
		f(packets, o.bytes.Swap(0), o.used.Load())
	}
}

// visited is a lookup and the entry that it gave, nil for a miss.
type visited struct {
	table *tableState
	id    uint8
	entry *counters
}

// equal says whether two paths are the same but for their packets.
func (p *path) equal(q *path) bool {
	return p.out == q.out && p.tunnel == q.tunnel && p.mark == q.mark && p.loss == q.loss &&
		p.last == q.last && p.learned == q.learned && p.begins == q.begins && slices.Equal(p.visits, q.visits) && slices.Equal(p.groups, q.groups)
}

// hash is over the entries met, which nearly tell paths apart.
func (p *path) hash() uint64 {
	h := hashOf(p.visits, mix(lookupSeed, p.learned))
	if p.out != nil {
		h = mix(h, uint64(p.out.no)+1)
	}
	return h
}

// hashOf is over entries met.
func hashOf(visits []visited, h uint64) uint64 {
	for _, v := range visits {
		h = mix(h, uint64(v.id)<<32)
		if v.entry != nil {
			h = mix(h, uint64(v.entry.slot))
		}
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
	kept.visits, kept.groups, kept.sum = slices.Clone(p.visits), slices.Clone(p.groups), new(owed)
	i = uint32(len(c.paths))
	c.listing.Lock()
	c.paths = append(c.paths, &kept)
	c.listing.Unlock()
	c.byHash[h] = i
	return i
}

// credit counts a packet for a path.
func (c *cache) credit(p *path, size int) {
	if p.packets == 0 {
		c.fresh = append(c.fresh, p)
	}
	p.packets++
	p.bytes += uint64(size)
}

// tellCache tells what the batch's replayed packets counted.
func (w *worker) tellCache() {
	if c := w.cache; c != nil {
		c.tell(w)
		c.publish()
	}
}

// tell shows others what the paths counted. The dozens of entries and tables of a
// path would cost a packet that comes alone more than all else that is done for it;
// they learn of it when somebody asks (creditAll).
func (c *cache) tell(w *worker) {
	for _, p := range c.fresh {
		p.sum.add(p.packets, p.bytes, w.now)
		if p.out == nil {
			w.drops[p.loss.table][p.loss.reason].Add(p.packets)
		}
		p.packets, p.bytes = 0, 0
	}
	clear(c.fresh)
	c.fresh = c.fresh[:0]
	c.round++
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
			p.sum.take(p.tellDirectly)
		}
	}
}

// creditNow has entries, tables, groups and ports know what was counted elsewhere
// until now: by the kernel's shortcuts, by paths that packets were replayed along, and
// by stretches that they took.
func (s *Switch) creditNow() {
	s.crediting.Lock() // who asks meanwhile is to see it too
	defer s.crediting.Unlock()
	s.shortcuts.creditNow()
	for _, w := range s.workers {
		if w.cache != nil {
			w.cache.creditAll()
		}
		if w.stretches != nil {
			w.stretches.creditAll()
		}
	}
}
