package store

import (
	"testing"

	"github.com/antrail/antrail/conntrack/proto"
	"github.com/antrail/antrail/conntrack/tuple"
	"github.com/antrail/antrail/internal/racetest"
)

// TestLinked: while another cell comes into its chain, and goes again, a lookup that is
// sure finds what is there.
func TestLinked(t *testing.T) {
	a, x := NewArena(racetest.MostWrites+1), NewIndex(4) // a cell for each turn of racetest.Beside
	w := tuple.Words{1, 2, 3, 4, 5}
	stays := a.Alloc()
	a.At(stays).Fill(&Entry{}, &FixedWords{1, 2, 3, 4, 5})
	a.At(stays).Unlock(1)
	const chain = 3
	x.Link(a, chain, stays, tuple.Original)
	racetest.Beside(func() {
		if r, _, sure := x.walk(a, chain, &w); sure && r == 0 {
			t.Error("a lookup is sure that nothing is there")
		}
	}, func(int) {
		slot := a.Alloc()
		x.Link(a, chain, slot, tuple.Original)
		racetest.Linger(20)
		x.Unlink(a, chain, slot, tuple.Original)
	}, func() bool { return x.heads[chain].Load() != makeRef(stays, tuple.Original) })
}

// TestLookupOutOfItsChain: a lookup that comes to the end of another chain is not sure that
// its key is missing. Another worker has unlinked the cell that it read, and has linked it
// into that chain.
func TestLookupOutOfItsChain(t *testing.T) {
	a, x := NewArena(4), NewIndex(4)
	k := tuple.Key{Src: tuple.Address{Lo: 1}, Dst: tuple.Address{Lo: 2}, SrcPort: 7, DstPort: 8, Proto: 17, Family: tuple.IPv4}
	w, nobody := k.Words(), tuple.Words{}
	const own, other = 3, 5
	slot := a.Alloc()
	a.At(slot).Fill(&Entry{Keys: [2]tuple.Key{k, k.Reversed()}, State: proto.State{Expires: 1}}, &FixedWords{})
	x.Link(a, own, slot, tuple.Original)
	if _, _, sure := x.walk(a, own, &nobody); !sure {
		t.Error("at the end of its own chain a lookup is not sure")
	}
	a.At(slot).chain[tuple.Original].Store(atEnd | other)
	if _, _, sure := x.walk(a, own, &w); sure {
		t.Error("at the end of another chain a lookup is sure")
	}
}
