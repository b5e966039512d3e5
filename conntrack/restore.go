package conntrack

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/packet"
)

// Taking connections over from a process before (CT-43). What lies in the
// memory is treated as hostile: a cell is taken when its checksum is right and
// every field is one that Track could have written; everything else is thrown
// away and counted. A process that was killed leaves at most one cell of each
// worker half written: its generation is still even, so it is no connection. An
// update that was cut short leaves words of two moments, each of them possible,
// which costs a stale TCP window and no more (CT-12).

// Restore makes a table over memory of ArenaSize(Config.Capacity) bytes, which
// begins at a multiple of 64 and stays mapped for as long as the table is used.
// It takes over the connections that a process before left in it; Stats says
// how many, or why the table begins empty. Config.Now has to be the clock that
// the process before had; boot tells apart the times between which it was set
// back. The error is for memory that cannot hold an arena.
func Restore(c Config, memory []byte, boot [16]byte) (*Table, error) {
	start := time.Now()
	t, h, err := overArena(&c, memory)
	if err != nil {
		return nil, err
	}
	why := h.foreign(boot, len(t.arena.cells))
	if why != "" {
		h.stamp(boot, len(t.arena.cells))
	} else {
		t.restore(c.Now())
	}
	t.counts.restored.Empty, t.counts.restored.Took = why, time.Since(start)
	return t, nil
}

// Await makes a table over memory, as Restore does, that another process is still
// using. Neither the memory is written nor the table may be used before TakeOver.
// The error says also why the connections could not be taken over.
func Await(c Config, memory []byte, boot [16]byte) (*Table, error) {
	t, h, err := overArena(&c, memory)
	if err != nil {
		return nil, err
	}
	if why := h.foreign(boot, len(t.arena.cells)); why != "" {
		return nil, fmt.Errorf("the connections cannot be taken over: %s", why)
	}
	return t, nil
}

// TakeOver takes the connections over, once the other process uses them no more.
// It is called once, on a table that Await made.
func (t *Table) TakeOver() {
	start := time.Now()
	t.restore(t.clock())
	t.counts.restored.Took = time.Since(start)
}

// overArena makes an empty table over memory, which it leaves as it is.
func overArena(c *Config, memory []byte) (*Table, *header, error) {
	*c = c.withDefaults()
	h, cells, err := lay(memory)
	if err != nil {
		return nil, nil, err
	}
	c.Max = min(c.Max, len(cells)-1)
	return newTable(c, &arena{cells: cells, top: &h.top}), h, nil
}

// restorer is what those who restore share. They work in three phases, each of
// which goes over memory in order or stays within a processor's cache; waiting
// for memory would take longer than all the rest:
//
//  1. cells are verified, and their places in the index noted by part of the
//     index (runVerify);
//  2. each part's chains are made, aside (runLink, relink.go);
//  3. the cells that are not the last of their chains are told so (runFollow).
type restorer struct {
	t       *Table
	now     int64
	longest int64 // timeout there is
	takers  []*taker
	next    atomic.Uint32 // the phase's next slice of cells, or part of the index
	// room is how many more connections the limit allows, when there may be too
	// many.
	room   atomic.Int64
	scarce bool
}

// restoring is what became of a cell.
type restoring uint8

const (
	cellFree restoring = iota
	cellTaken
	cellTorn
	cellExpired
	cellRefused
	restoreOutcomes
)

// taker is one of those who restore, and what it has found.
type taker struct {
	*restorer
	found [restoreOutcomes]int
	zones [1 << 16]uint32  // connections
	ports [1 << 16]holding // by portShare, lastShare included
	free  span             // cells
	parts [][]placed
	// followed is by slice of cells.
	followed [][]followed
	stray    []ref
	chain    int // the longest
}

// holding is a port's connections, and the lists of those that may be evicted.
type holding struct {
	count uint32
	lists [evictable]span
}

// span is the two ends of a list that runs through cells; 0 for an empty one.
type span struct {
	first, last uint32
	length      int32
}

// restore takes over what lies in the cells. Nobody else uses the table yet.
func (t *Table) restore(now int64) {
	top := t.arena.top.Load()
	r := &restorer{t: t, now: now, longest: int64(t.timeouts.longest())}
	r.room.Store(t.limits.max.Load())
	r.scarce = int64(top)-1 > r.room.Load()
	for range runtime.GOMAXPROCS(0) {
		r.takers = append(r.takers, &taker{
			restorer: r, parts: make([][]placed, t.index.parts()), followed: make([][]followed, top/restoreSlice+1),
		})
	}
	for _, phase := range []func(*taker){(*taker).runVerify, (*taker).runLink, (*taker).runFollow} {
		r.next.Store(0)
		var all sync.WaitGroup
		for _, k := range r.takers {
			all.Go(func() { runPhase(k, phase) })
		}
		all.Wait()
	}
	for _, k := range r.takers {
		k.settle()
	}
	for _, k := range r.takers {
		k.dropStrays()
	}
}

// runPhase is one taker's part of a phase.
func runPhase(k *taker, phase func(*taker)) { phase(k) }

// restoreSlice is how many cells a taker takes at a time.
const restoreSlice = 1 << 12

// slice is the next slots for a taker, none when first is end.
func (r *restorer) slice() (first, end uint32) {
	top := uint64(r.t.arena.top.Load())
	at := uint64(r.next.Add(1)-1) * restoreSlice
	return uint32(min(max(at, 1), top)), uint32(min(at+restoreSlice, top))
}

// runVerify takes cells over, or frees them.
func (k *taker) runVerify() {
	for first, end := k.slice(); first < end; first, end = k.slice() {
		for slot := first; slot < end; slot++ {
			k.found[k.cell(slot)]++
		}
	}
}

// cell takes over one cell, or frees it.
func (k *taker) cell(slot uint32) restoring {
	c := k.t.arena.at(slot)
	head := c.head.Load()
	gen := uint32(head)
	outcome := cellFree
	if live(head) {
		if outcome = k.take(slot, c); outcome == cellTaken {
			if head&locked != 0 {
				c.unlock(gen)
			}
			return cellTaken
		}
	}
	c.unlock((gen + 1) &^ 1)
	*unshared(&c.newer) = k.free.first
	k.free.first = slot
	if k.free.last == 0 {
		k.free.last = slot
	}
	return outcome
}

// take makes a cell's contents a connection again, but for its chains.
func (k *taker) take(slot uint32, c *cell) restoring {
	var e entry
	c.load(&e)
	switch {
	case c.checksum() != c.sum.Load() || !e.plausible(&c.mut, c.fixed.Load()) || e.expires > k.now+int64(MaxTimeout):
		return cellTorn
	case e.expires <= k.now:
		return cellExpired
	case k.scarce && k.room.Add(-1) < 0:
		return cellRefused
	}
	k.zones[e.keys[original].zone]++
	port := &k.ports[min(e.port, lastShare)]
	port.count++
	if e.flags&away != 0 {
		e.relearn()
	}
	e.setExpendable()
	e.expires = min(e.expires, k.now+k.longest) // the process before may have had longer timeouts
	c.store(&e)
	if l := e.list(); l != unlisted {
		port.lists[l].append(k.t.arena, slot, k.now)
	}
	// The reply key first, as in publish.
	k.place(makeRef(slot, reply), &e.keys[reply])
	k.place(makeRef(slot, original), &e.keys[original])
	return cellTaken
}

// append is ageList.join for a list that no other goroutine sees.
func (s *span) append(a *arena, slot uint32, now int64) {
	c := a.at(slot)
	*unshared(&c.since) = uint32(now >> tickBits)
	*unshared(&c.older) = s.last
	*unshared(&c.newer) = 0
	if s.last == 0 {
		s.first = slot
	} else {
		*unshared(&a.at(s.last).newer) = slot
	}
	s.last = slot
	s.length++
}

// settle gives the table what the taker has found: counts, the free cells, and
// the lists of those that may be evicted.
func (k *taker) settle() {
	t, sum := k.t, &k.t.counts.restored
	sum.Entries += k.found[cellTaken]
	sum.Torn += k.found[cellTorn]
	sum.Expired += k.found[cellExpired]
	sum.Refused += k.found[cellRefused]
	t.limits.total.Add(int64(k.found[cellTaken]))
	t.counts.probe(k.chain)
	for zone, n := range k.zones {
		if n > 0 {
			t.zone(uint16(zone)).count.Add(int64(n))
		}
	}
	for port := range k.ports {
		if h := &k.ports[port]; h.count > 0 {
			s := t.shares.of(t, uint32(port))
			t.shares.add(s, int64(h.count))
			for i := range h.lists {
				s.lists[i].adopt(t.arena, h.lists[i])
			}
		}
	}
	if k.free.last != 0 {
		t.arena.at(k.free.last).newer.Store(uint32(t.arena.free.Load()))
		t.arena.free.Store(uint64(k.free.first))
	}
}

// adopt puts a list behind what a port's has already.
func (l *ageList) adopt(a *arena, list span) {
	if list.first == 0 {
		return
	}
	before := l.newest.Load()
	if before == 0 {
		l.oldest.Store(list.first)
	} else {
		a.at(before).newer.Store(list.first)
		a.at(list.first).older.Store(before)
	}
	l.newest.Store(list.last)
	l.length.Add(list.length)
}

// plausible says whether Track could have written the entry. Of fixed, the
// upper half is left to be checked.
func (e *entry) plausible(m *mutable, fixed uint64) bool {
	return e.keys[original].plausible() && e.keys[reply].plausible() &&
		e.keys[original].mayAnswer(&e.keys[reply]) &&
		fixed>>32 == uint64(e.flags&natFlags) && e.flags&natFlags != natFlags &&
		e.expires > 0 && m[1].Load()>>48 == 0 && (e.flags&away == 0 || e.settled()) && e.state <= sctpHeartbeatSent &&
		(!e.keys[original].tcp() || e.tcp[original].plausible(m[6].Load()) && e.tcp[reply].plausible(m[7].Load()))
}

// plausible says whether a packet could show the key.
func (k *key) plausible() bool {
	switch k.family {
	case ipv4:
		return k.src.hi == 0 && k.src.lo>>32 == 0 && k.dst.hi == 0 && k.dst.lo>>32 == 0 && k.proto != packet.ProtoICMPv6
	case ipv6:
		return k.proto != packet.ProtoICMP
	}
	return false
}

// mayAnswer says whether the other key can be that of the answer.
func (k *key) mayAnswer(back *key) bool {
	return k.zone == back.zone && k.proto == back.proto && k.family == back.family
}

// plausible says whether a side's state is one that there is; w is its word.
func (p *peer) plausible(w uint64) bool {
	return p.state <= tcpTimeWait && p.scale <= maxScale && p.scaled <= unknownScale && w>>56 == 0
}
