package store

import (
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/packet"
)

// Restoring the connections that an earlier process has left in an arena (CT-43). The contents of
// the memory are treated as hostile. A connection is sound if its checksum is right and a table
// could have written every field.
//
// A killed process leaves at most one half-written cell for each worker. The generation of that
// cell is still even, so it does not count as a connection. An update that was cut short leaves
// words of two moments. Each word is valid, so only a TCP window may be out of date (CT-12).

// restorer is the shared state of the restoring workers. They work in three phases. Each phase
// reads memory in order, or stays within a processor's cache. Waiting for memory would take
// longer than all other work.
//
//  1. runVerify verifies cells, and collects their keys by part of the index.
//  2. runLink builds the chains of each part (relink.go).
//  3. runFollow writes the next reference into cells that are not the end of their chains.
type restorer struct {
	a       *Arena
	x       *Index
	chains  *tuple.ChainSecret
	accept  func(worker int, slot uint32, e *Entry, sound bool) bool
	workers []*worker
	next    atomic.Uint32 // the phase's next slice of cells, or part of the index
}

// worker is a restoring worker, and its results.
type worker struct {
	*restorer
	no    int
	e     Entry
	free  Span // cells
	parts [][]placed
	// followed is by slice of cells.
	followed [][]followed
	stray    []ref
	chain    int // the longest
}

// RestoreWorkers is how many workers restore an arena, at most most. On a busy machine each may
// have to wait for a processor, so a small arena has one: the caller.
func (a *Arena) RestoreWorkers(most int) int { return min(most, 1+int(a.End())/restoreSlice) }

// Restore builds the index for the connections in an arena, and frees the other cells. No other
// goroutine may use arena and index yet.
//
// accept says whether a connection stays. sound says whether a table could have written it.
// accept may change the entry, which is then stored. Several workers call accept at a time, each
// with its number and for other slots.
//
// strays are slots of connections with a key that another connection has too, or whose chain is
// too long. Only a forged arena has them. longest is the length of the longest chain.
func (x *Index) Restore(
	a *Arena, chains *tuple.ChainSecret, workers int, accept func(worker int, slot uint32, e *Entry, sound bool) bool,
) (strays []uint32, longest int) {
	r := &restorer{a: a, x: x, chains: chains, accept: accept}
	for no := range workers {
		r.workers = append(r.workers, &worker{
			restorer: r, no: no, parts: make([][]placed, x.parts()), followed: make([][]followed, a.End()/restoreSlice+1),
		})
	}
	for _, phase := range []func(*worker){(*worker).runVerify, (*worker).runLink, (*worker).runFollow} {
		r.next.Store(0)
		var all sync.WaitGroup
		for _, k := range r.workers[1:] {
			all.Go(func() { runPhase(k, phase) })
		}
		runPhase(r.workers[0], phase)
		all.Wait()
	}
	for _, k := range r.workers {
		if k.free.last != 0 {
			a.At(k.free.last).newer.Store(uint32(a.free.Load()))
			a.free.Store(uint64(k.free.first))
		}
		for _, r := range k.stray {
			strays = append(strays, r>>1)
		}
		longest = max(longest, k.chain)
	}
	return strays, longest
}

// runPhase is one worker's part of a phase.
func runPhase(k *worker, phase func(*worker)) { phase(k) }

// restoreSlice is how many cells a worker takes at a time.
const restoreSlice = 1 << 12

// slice is the next slots for a worker. There are none if first equals end.
func (r *restorer) slice() (first, end uint32) {
	top := uint64(r.a.End())
	at := uint64(r.next.Add(1)-1) * restoreSlice
	return uint32(min(max(at, 1), top)), uint32(min(at+restoreSlice, top))
}

// runVerify restores cells, or frees them.
func (k *worker) runVerify() {
	for first, end := k.slice(); first < end; first, end = k.slice() {
		for slot := first; slot < end; slot++ {
			k.restoreCell(slot)
		}
	}
}

// restoreCell restores one cell, or frees it.
func (k *worker) restoreCell(slot uint32) {
	c := k.a.At(slot)
	head := c.Head()
	gen := uint32(head)
	if Live(head) && k.restoreConnection(slot, c) {
		if head&Locked != 0 {
			c.Unlock(gen)
		}
		return
	}
	c.Unlock((gen + 1) &^ 1)
	*unshared(&c.newer) = k.free.first
	k.free.first = slot
	if k.free.last == 0 {
		k.free.last = slot
	}
}

// restoreConnection restores the connection in a cell, except for its chains. It reports false if
// no connection stays.
func (k *worker) restoreConnection(slot uint32, c *Cell) bool {
	e := &k.e
	*e = Entry{}
	c.Load(e)
	sound := c.checksum() == c.sum.Load() && e.plausible(&c.mut, c.fixed.Load())
	if !k.accept(k.no, slot, e, sound) {
		return false
	}
	c.Store(e)
	// The reply key comes first, as when a connection is inserted. So if both keys are equal, a
	// lookup finds the original direction.
	k.place(makeRef(slot, tuple.Reply), &e.Keys[tuple.Reply])
	k.place(makeRef(slot, tuple.Original), &e.Keys[tuple.Original])
	return true
}

// plausible says whether a table could have written the entry. It checks the upper half of fixed.
func (e *Entry) plausible(m *mutable, fixed uint64) bool {
	return plausible(&e.Keys[tuple.Original]) && plausible(&e.Keys[tuple.Reply]) &&
		mayAnswer(&e.Keys[tuple.Original], &e.Keys[tuple.Reply]) &&
		fixed>>32 == uint64(e.Flags&natFlags) && e.Flags&natFlags != natFlags &&
		e.Expires > 0 && m[1].Load()>>48 == 0 && e.SCTP.Valid() &&
		(!e.Keys[tuple.Original].TCP() || proto.ValidPeer(m[6].Load()) && proto.ValidPeer(m[7].Load()))
}

// plausible says whether a packet could have the key.
func plausible(k *tuple.Key) bool {
	switch k.Family {
	case tuple.IPv4:
		return k.Src.Hi == 0 && k.Src.Lo>>32 == 0 && k.Dst.Hi == 0 && k.Dst.Lo>>32 == 0 && k.Proto != packet.ProtoICMPv6
	case tuple.IPv6:
		return k.Proto != packet.ProtoICMP
	}
	return false
}

// mayAnswer says whether back can be the key of a reply to k.
func mayAnswer(k, back *tuple.Key) bool {
	return k.Zone == back.Zone && k.Proto == back.Proto && k.Family == back.Family
}
