package conntrack

import (
	"sync"
	"testing"
)

// TestFreeCellsComeWithAnotherTag: whoever has read which cell is free, and which is the
// next one, does not take it when others have taken both meanwhile and given the first
// one back.
func TestFreeCellsComeWithAnotherTag(t *testing.T) {
	a := newArena(2)
	one, other := a.alloc(), a.alloc()
	a.release(other)
	a.release(one)
	read := a.free.Load()
	if a.alloc() != one || a.alloc() != other {
		t.Fatal("the free cells are others")
	}
	if a.release(one); a.free.Load() == read {
		t.Errorf("the list of free cells is %x as before, and the next cell is taken", read)
	}
}

// TestNewCellsAmongMany: workers take cells that were never used, and each makes its own
// live at once. What another one still believes of the cell changes nothing of that.
func TestNewCellsAmongMany(t *testing.T) {
	const n = 50_000
	a := newArena(n)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for slot := a.alloc(); slot != 0; slot = a.alloc() {
				a.at(slot).unlock(1)
			}
		})
	}
	all.Wait()
	for slot := uint32(1); slot <= n; slot++ {
		if head := a.at(slot).head.Load(); !live(head) {
			t.Fatalf("cell %d was made live, and its head is %x", slot, head)
		}
	}
}

// TestRestoreUnlocks: a process that is killed while it holds a connection's lock leaves
// the connection to the next one, and not the lock.
func TestRestoreUnlocks(t *testing.T) {
	memory := pages(t, ArenaSize(16))
	b := restored(t, memory, 1, Config{})
	h := pair(t, b.Table, 7, 1)[original].seen.at
	b.arena.at(h.slot).lock(h.gen)
	b = restored(t, memory, 2, Config{})
	if head := b.arena.at(h.slot).head.Load(); head&locked != 0 || uint32(head) != h.gen {
		t.Fatalf("the head is %x, of generation %d", head, h.gen)
	}
	b.want(sideFrame(7, true), Request{Zone: 100, Commit: true, Mark: 1, MarkMask: 1}, "est|rpl|trk")
}
