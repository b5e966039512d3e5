package store

import (
	"sync"
	"testing"
)

// TestFreeCellsComeWithAnotherTag: a worker has read which cell is free, and which is the
// next one. Other workers take both meanwhile, and free the first. Then the worker does not
// take it.
func TestFreeCellsComeWithAnotherTag(t *testing.T) {
	a := NewArena(2)
	one, other := a.Alloc(), a.Alloc()
	a.Release(other)
	a.Release(one)
	read := a.free.Load()
	if a.Alloc() != one || a.Alloc() != other {
		t.Fatal("the free cells are others")
	}
	if a.Release(one); a.free.Load() == read {
		t.Errorf("the list of free cells is %x as before, and the next cell is taken", read)
	}
}

// TestNewCellsAmongMany: workers take cells that were never used, and each makes its own live at
// once. A worker with an outdated view of a cell does not change that.
func TestNewCellsAmongMany(t *testing.T) {
	const n = 50_000
	a := NewArena(n)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for slot := a.Alloc(); slot != 0; slot = a.Alloc() {
				a.At(slot).Unlock(1)
			}
		})
	}
	all.Wait()
	for slot := uint32(1); slot <= n; slot++ {
		if head := a.At(slot).Head(); !Live(head) {
			t.Fatalf("cell %d was made live, and its head is %x", slot, head)
		}
	}
}
