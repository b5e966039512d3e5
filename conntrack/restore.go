package conntrack

import (
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
	c = c.withDefaults()
	start := time.Now()
	h, cells, err := lay(memory)
	if err != nil {
		return nil, err
	}
	c.Max = min(c.Max, len(cells)-1)
	why := h.foreign(boot, len(cells))
	if why != "" {
		h.stamp(boot, len(cells))
	}
	t := newTable(&c, &arena{cells: cells, top: &h.top})
	if why == "" {
		t.restore(c.Now())
	}
	t.counts.restored.Empty, t.counts.restored.Took = why, time.Since(start)
	return t, nil
}

// restoreSlice is how many cells one of those who restore takes at a time.
const restoreSlice = 1 << 12

// restorer is what those who restore share.
type restorer struct {
	t       *Table
	now     int64
	longest int64
	next    atomic.Uint32
	count   [restoreOutcomes]atomic.Int64
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

// restore takes over what lies in the cells. Nobody else uses the table yet.
func (t *Table) restore(now int64) {
	r := &restorer{t: t, now: now, longest: int64(t.timeouts.longest())}
	r.next.Store(1)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(r.runRestore)
	}
	all.Wait()
	n := func(o restoring) int { return int(r.count[o].Load()) }
	t.counts.restored = Restored{
		Entries: n(cellTaken), Torn: n(cellTorn), Expired: n(cellExpired), Refused: n(cellRefused),
	}
}

// runRestore takes slices of cells until none is left.
func (r *restorer) runRestore() {
	top := r.t.arena.top.Load()
	for {
		end := r.next.Add(restoreSlice)
		from := end - restoreSlice
		if from >= top {
			return
		}
		var count [restoreOutcomes]int64
		for slot := from; slot < min(end, top); slot++ {
			count[r.cell(slot)]++
		}
		for o, n := range count {
			r.count[o].Add(n)
		}
	}
}

// cell takes over one cell, or frees it.
func (r *restorer) cell(slot uint32) restoring {
	c := r.t.arena.at(slot)
	gen := uint32(c.head.Load())
	outcome := cellFree
	if live(uint64(gen)) {
		if outcome = r.take(handle{slot, gen}, c); outcome == cellTaken {
			return cellTaken
		}
	}
	c.unlock((gen + 1) &^ 1)
	r.t.arena.release(slot)
	return outcome
}

// take makes a cell's contents a connection again.
func (r *restorer) take(h handle, c *cell) restoring {
	t := r.t
	var e entry
	c.load(&e)
	fixed := c.fixedWords()
	switch {
	case checksum(&fixed) != c.sum.Load() || !e.plausible(&c.mut, fixed[len(fixed)-1]) || e.expires > r.now+int64(MaxTimeout):
		return cellTorn
	case e.expires <= r.now:
		return cellExpired
	case t.reserve(e.keys[original].zone, t.shares.of(t, e.port)) != DropNone:
		return cellRefused
	}
	e.setExpendable()
	e.expires = min(e.expires, r.now+r.longest) // the process before may have had longer timeouts
	c.store(&e)
	if t.publish(h, c) != inserted {
		t.forget(e.keys[original].zone, e.port)
		return cellTorn
	}
	if e.flags&expendable != 0 {
		t.shares.of(t, e.port).join(t.arena, h.slot, r.now)
	}
	c.unlock(h.gen)
	return cellTaken
}

// plausible says whether Track could have written the entry. Of fixed, the
// upper half is left to be checked.
func (e *entry) plausible(m *mutable, fixed uint64) bool {
	return e.keys[original].plausible() && e.keys[reply].plausible() &&
		e.keys[original].mayAnswer(&e.keys[reply]) &&
		fixed>>32 == uint64(e.flags&natFlags) && e.flags&natFlags != natFlags &&
		e.expires > 0 && m[1].Load()>>48 == 0 && e.flags <= 2*expendable-1 && e.state <= sctpHeartbeatSent &&
		(!e.keys[original].tcp() || e.tcp[original].plausible(m[5].Load()) && e.tcp[reply].plausible(m[7].Load()))
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

// plausible says whether a side's state is one that there is; b is its second
// word.
func (p *peer) plausible(b uint64) bool {
	return p.state <= tcpTimeWait && p.scale <= maxScale && p.scaled <= unknownScale && b>>56 == 0
}
