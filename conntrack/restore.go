package conntrack

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
)

// Restoring the connections of an earlier process (CT-43). Package store finds the cells that
// hold a connection. This file restores or refuses each, and counts it.

// ArenaSize is how many bytes of memory hold the arena of a table for n connections.
func ArenaSize(n int) int { return store.Size(n) }

// Restore makes a table over memory of ArenaSize(Config.Capacity) bytes, and restores the
// connections that an earlier process has left there. The memory begins at a multiple of 64, and
// stays mapped while the table is used. Stats has their number, or why the table begins empty.
// Config.Now must be the clock of the earlier process. boot is different each time that this
// clock was reset. The error is for memory that cannot hold an arena.
func Restore(c Config, memory []byte, boot [16]byte) (*Table, error) {
	start := time.Now()
	t, err := overArena(&c, memory)
	if err != nil {
		return nil, err
	}
	why := t.arena.Foreign(boot)
	if why != "" {
		t.arena.Stamp(boot)
	} else {
		t.restoreConnections(c.Now())
	}
	t.counts.restored.Empty, t.counts.restored.Took = why, time.Since(start)
	return t, nil
}

// Await makes a table over memory, as Restore does, while another process still uses that
// memory. Await does not write it. The caller must not use the table before TakeOver. The
// error also says why the connections cannot be restored.
func Await(c Config, memory []byte, boot [16]byte) (*Table, error) {
	t, err := overArena(&c, memory)
	if err != nil {
		return nil, err
	}
	if why := t.arena.Foreign(boot); why != "" {
		return nil, fmt.Errorf("the connections cannot be taken over: %s", why)
	}
	t.index.MapPages()
	return t, nil
}

// TakeOver restores the connections. The caller calls it once, on a table made by Await, after
// the other process has stopped using the memory. No packet moves meanwhile, so Await has already
// done the slow part.
func (t *Table) TakeOver() {
	start := time.Now()
	t.restoreConnections(t.clock())
	t.counts.restored.Took = time.Since(start)
}

// overArena makes an empty table over memory, and does not change the memory.
func overArena(c *Config, memory []byte) (*Table, error) {
	*c = c.withDefaults()
	a, err := store.OverMemory(memory)
	if err != nil {
		return nil, err
	}
	c.Max = min(c.Max, a.Capacity())
	return newTable(c, a), nil
}

// restorer is the shared state of the restoring goroutines.
type restorer struct {
	t       *Table
	now     int64
	longest int64 // timeout of the table
	workers []*restoreWorker
	// room is how many more connections the limit allows. It counts only if scarce is set.
	room   atomic.Int64
	scarce bool
}

// restoring is the outcome for a connection.
type restoring uint8

const (
	cellTaken restoring = iota
	cellTorn
	cellExpired
	cellRefused
	restoreOutcomes
)

// restoreWorker is the results of one of the goroutines.
type restoreWorker struct {
	*restorer
	found [restoreOutcomes]int
	zones paged[uint32]  // connections
	ports paged[holding] // lastShare included
}

// holding is a port's connections, and its lists of evictable ones.
type holding struct {
	count uint32
	lists [evictable]store.Span
}

// restoreConnections restores the connections in the cells. No other goroutine may use the table yet.
func (t *Table) restoreConnections(now int64) {
	r := &restorer{t: t, now: now, longest: int64(t.machine.Timeouts.Longest())}
	r.room.Store(t.limits.max.Load())
	r.scarce = int64(t.arena.End())-1 > r.room.Load()
	for range t.arena.RestoreWorkers(runtime.GOMAXPROCS(0)) {
		r.workers = append(r.workers, &restoreWorker{restorer: r})
	}
	strays, chain := t.index.Restore(t.arena, &t.chains, len(r.workers), func(worker int, slot uint32, e *store.Entry, sound bool) bool {
		return r.workers[worker].restoreEntry(slot, e, sound)
	})
	t.counts.probe(chain)
	for _, k := range r.workers {
		k.settle()
	}
	for _, slot := range strays {
		t.dropStray(slot)
	}
}

// restoreEntry restores the connection in a slot. It reports false for a connection that must
// end. It may change e, which is then stored.
func (k *restoreWorker) restoreEntry(slot uint32, e *store.Entry, sound bool) bool {
	became := k.outcome(e, sound)
	k.found[became]++
	if became != cellTaken {
		return false
	}
	zone, portNo := e.Keys[tuple.Original].Zone, min(e.Port, lastShare)
	port := k.ports.at(uint16(portNo))
	*k.zones.at(zone)++
	port.count++
	if e.Flags&store.Offloaded != 0 {
		forgetWindows(e)
	}
	setExpendable(e)
	e.Expires = min(e.Expires, k.now+k.longest) // the earlier process may have had longer timeouts
	if l := listOf(e); l != unlisted {
		port.lists[l].Append(k.t.arena, slot, k.now)
	}
	return true
}

// outcome decides the outcome for a connection.
func (k *restoreWorker) outcome(e *store.Entry, sound bool) restoring {
	switch {
	case !sound || e.Flags&store.Offloaded != 0 && !settled(e) || e.Expires > k.now+int64(proto.MaxTimeout):
		return cellTorn
	case e.Expires <= k.now:
		return cellExpired
	case k.scarce && k.room.Add(-1) < 0:
		return cellRefused
	}
	return cellTaken
}

// settle adds the worker's counts and its lists of evictable connections to the table.
func (k *restoreWorker) settle() {
	t, sum := k.t, &k.t.counts.restored
	sum.Entries += k.found[cellTaken]
	sum.Torn += k.found[cellTorn]
	sum.Expired += k.found[cellExpired]
	sum.Refused += k.found[cellRefused]
	t.limits.total.Add(int64(k.found[cellTaken]))
	for zone, count := range k.zones.all() {
		if *count > 0 {
			t.zone(zone).count.Add(int64(*count))
		}
	}
	for port, h := range k.ports.all() {
		if h.count == 0 {
			continue
		}
		s := t.shares.ofPort(t, uint32(port))
		t.shares.countConnections(s, int64(h.count))
		for i := range h.lists {
			s.lists[i].Adopt(t.arena, h.lists[i])
		}
	}
}

// dropStray removes a connection that shares a key with another one.
func (t *Table) dropStray(slot uint32) {
	c := t.arena.At(slot)
	head := c.Head()
	if !store.Live(head) { // both its keys were strays
		return
	}
	t.index.UnlinkStray(t.arena, &t.chains, slot)
	from := t.shares.ofPort(t, c.Port())
	from.move(t.arena, slot, listOfCell(c), unlisted, 0)
	w := c.KeyWords(tuple.Original)
	c.Unlock(uint32(head) + 1)
	t.arena.Release(slot)
	t.uncount(w.Zone(), from)
	t.counts.restored.Entries--
	t.counts.restored.Torn++
}
