package store

import "sync/atomic"

// Arena is the cells of a table, in one piece of memory of a fixed size without Go pointers. So a
// million connections cost the garbage collector nothing. Slot 0 is never used, so that 0 can
// mean none. Any goroutine may use an arena.
type Arena struct {
	cells []Cell
	top   *atomic.Uint32 // slots below it have been allocated at least once
	free  atomic.Uint64  // first free slot in the low half; above it a tag that detects reuse
	// header is the header of memory that outlives the process; nil otherwise.
	header *header
}

// NewArena makes an arena for n connections in the process's own memory.
func NewArena(n int) *Arena {
	a := &Arena{cells: make([]Cell, n+1), top: new(atomic.Uint32)}
	a.top.Store(1)
	return a
}

// Capacity is how many connections fit.
func (a *Arena) Capacity() int { return len(a.cells) - 1 }

// End is the slot after the highest one that was ever allocated.
func (a *Arena) End() uint32 { return a.top.Load() }

// At is the cell of a slot.
func (a *Arena) At(slot uint32) *Cell { return &a.cells[slot] }

// Alloc allocates the slot of a free cell; 0 if there is none.
func (a *Arena) Alloc() uint32 {
	for {
		f := a.free.Load()
		slot := uint32(f)
		if slot == 0 {
			return a.grow()
		}
		// If another worker takes the cell meanwhile, the link may be wrong. Then the
		// tag has changed, and the compare-and-swap fails.
		next := a.At(slot).newer.Load()
		if a.free.CompareAndSwap(f, tagged(f, next)) {
			return slot
		}
	}
}

// grow allocates a cell that was never used, and first makes it a free one. The sweep reads the
// cell as soon as top includes it. A process with another layout, or before the last boot, may
// have left bytes there that look like a connection.
func (a *Arena) grow() uint32 {
	for {
		top := a.top.Load()
		if int(top) >= len(a.cells) {
			return 0
		}
		c := a.At(top)
		head := c.Head()
		// Until top changes, the head may be left from an earlier process. A head never has one
		// value twice.
		if a.top.Load() == top && c.clean(head) && a.top.CompareAndSwap(top, top+1) {
			return top
		}
	}
}

// Release frees a cell. Its generation must be even.
func (a *Arena) Release(slot uint32) {
	for {
		f := a.free.Load()
		a.At(slot).newer.Store(uint32(f))
		if a.free.CompareAndSwap(f, tagged(f, slot)) {
			return
		}
	}
}

// tagged is the free list's next head.
func tagged(before uint64, slot uint32) uint64 { return (before>>32+1)<<32 | uint64(slot) }

// Read copies the connection in a slot at one moment, under the cell's lock, and returns its
// handle. It reports false if there is none.
func (a *Arena) Read(slot uint32, e *Entry) (h Handle, ok bool) {
	c := a.At(slot)
	head := c.Head()
	h = Handle{slot, uint32(head)}
	if !Live(head) || !c.LockIf(h.Gen) {
		return Handle{}, false
	}
	c.Load(e)
	c.Unlock(h.Gen)
	return h, true
}

// Sees says whether a handle names a slot that this arena has allocated.
func (a *Arena) Sees(h Handle) bool { return h.Slot != 0 && h.Slot < a.top.Load() }
