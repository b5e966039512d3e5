package conntrack

import "sync/atomic"

// arena is the cells of a table: one piece of memory of a fixed size without Go
// pointers, so that a million connections cost the garbage collector nothing.
// Slot 0 is never used, so that 0 can mean none.
type arena struct {
	cells []cell
	top   *atomic.Uint32 // slots below it have been handed out at least once
	free  atomic.Uint64  // first free slot in the low half; a tag against reuse above
}

// newArena makes room for n connections in memory of the process's own.
func newArena(n int) *arena {
	a := &arena{cells: make([]cell, n+1), top: new(atomic.Uint32)}
	a.top.Store(1)
	return a
}

// capacity is how many connections fit.
func (a *arena) capacity() int { return len(a.cells) - 1 }

func (a *arena) at(slot uint32) *cell { return &a.cells[slot] }

// alloc hands out a free cell, 0 when there is none.
func (a *arena) alloc() uint32 {
	for {
		f := a.free.Load()
		slot := uint32(f)
		if slot == 0 {
			return a.grow()
		}
		// Meanwhile the cell may be taken, and its link be something else; then
		// the tag has moved on.
		next := a.at(slot).newer.Load()
		if a.free.CompareAndSwap(f, tagged(f, next)) {
			return slot
		}
	}
}

// grow hands out a cell that was never used, whatever its memory holds: the sweep
// sees it as soon as top says so, and must not take for a connection what a process
// of another layout, or of another boot, left there.
func (a *arena) grow() uint32 {
	for {
		top := a.top.Load()
		if int(top) >= len(a.cells) {
			return 0
		}
		c := a.at(top)
		head := c.head.Load()
		// As long as top stands, head is what was left there; and a head never comes again.
		if a.top.Load() == top && c.clean(head) && a.top.CompareAndSwap(top, top+1) {
			return top
		}
	}
}

// release takes a cell back whose generation is even.
func (a *arena) release(slot uint32) {
	for {
		f := a.free.Load()
		a.at(slot).newer.Store(uint32(f))
		if a.free.CompareAndSwap(f, tagged(f, slot)) {
			return
		}
	}
}

// tagged is the free list's next head.
func tagged(before uint64, slot uint32) uint64 { return (before>>32+1)<<32 | uint64(slot) }

// read copies the connection in a slot, as it is at one moment, and names it.
func (a *arena) read(slot uint32, e *entry) (h handle, ok bool) {
	c := a.at(slot)
	head := c.head.Load()
	h = handle{slot, uint32(head)}
	if !live(head) || !c.lock(h.gen) {
		return handle{}, false
	}
	c.load(e)
	c.unlock(h.gen)
	return h, true
}

// sees says whether a handle may name a slot of this arena.
func (a *arena) sees(h handle) bool { return h.slot != 0 && h.slot < a.top.Load() }
