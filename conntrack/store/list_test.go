package store

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestList: connections join and leave a list in any order, and a span comes behind them.
// The links of both directions say what a slice says.
func TestList(t *testing.T) {
	const n = 50
	a, random := NewArena(2*n), rand.New(rand.NewPCG(1, 2))
	var l List
	var want []uint32
	check := func() {
		t.Helper()
		var got []uint32
		last := uint32(0)
		for slot := l.Oldest(); slot != 0; slot = a.At(slot).Next() {
			if older := a.At(slot).older.Load(); older != last {
				t.Fatalf("behind slot %d stands slot %d, which says %d", last, slot, older)
			}
			got, last = append(got, slot), slot
		}
		if !slices.Equal(got, want) || int(l.Len()) != len(want) || l.last.Load() != last {
			t.Fatalf("the list is %v of %d to %d, want %v", got, l.Len(), l.last.Load(), want)
		}
	}
	for range 2000 {
		slot := 1 + random.Uint32N(n)
		if i := slices.Index(want, slot); i >= 0 {
			l.Remove(a, slot)
			want = slices.Delete(want, i, i+1)
		} else {
			l.Append(a, slot, 5<<tickBits)
			want = append(want, slot)
		}
		check()
	}
	for range 2 { // the second time to an empty list
		var s Span
		for slot := uint32(n + 1); slot <= 2*n; slot++ {
			s.Append(a, slot, 7<<tickBits)
			want = append(want, slot)
		}
		l.Adopt(a, s)
		check()
		if c := a.At(n + 1); c.TicksAfterListing(6<<tickBits) >= 0 || c.TicksAfterListing(9<<tickBits) != 2 {
			t.Errorf("%d ticks from 7 to 9", c.TicksAfterListing(9<<tickBits))
		}
		for ; len(want) > 0; want = want[1:] {
			l.Remove(a, want[0])
		}
		check()
	}
	l.Adopt(a, Span{})
	check()
}
