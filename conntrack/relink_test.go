package conntrack

import (
	"testing"
	"time"

	"github.com/antrail/antrail/conntrack/store"
	"github.com/antrail/antrail/conntrack/tuple"
)

// TestRestoreFindsTwins: of connections with the same key, one is taken over.
func TestRestoreFindsTwins(t *testing.T) {
	const n = 200
	memory := pages(t, ArenaSize(n+n/16)) // not crowded
	restored(t, memory, 5e9, Config{NewRate: -1}).fillUDP(n)
	key := func(slot, dir int) []byte { return memory[ArenaSize(slot-1)+keysAt+dir*keySize:][:keySize] }
	twin := func(slot, of int, dirs ...int) {
		for _, dir := range dirs {
			copy(key(slot, dir), key(of, dir))
		}
	}

	torn := 0
	for i := range store.MaxChain + 20 { // more than a chain would take
		twin(2+i, 1, tuple.Original, tuple.Reply)
		torn++
	}
	twin(150, 151, tuple.Original)
	twin(152, 153, tuple.Reply)
	torn += 2
	copy(key(161, tuple.Original), key(160, tuple.Reply)) // both keys of 161 are the reply key of 160
	copy(key(161, tuple.Reply), key(160, tuple.Reply))
	torn++
	seal(t, memory)

	b := restored(t, memory, 6e9, Config{NewRate: -1})
	if r := b.Stats().Restored; r.Torn != torn || r.Entries != n-torn {
		t.Errorf("restored %+v, want %d torn of %d", r, torn, n)
	}
	if most := b.Stats().ProbeMax; most > 5 {
		t.Errorf("a chain of %d", most)
	}
	b.checkOrder()
	for i := range torn { // in the cells that they left
		b.want(udpFrame("10.7.7.7", server, uint16(1+i), 53), commit, "new|trk")
	}
	b.checkOrder()
	b.now += int64(time.Hour)
	for range sweepRound / time.Second {
		b.Sweep(b.now)
	}
	if left := b.Stats().Entries; left != 0 {
		t.Errorf("%d connections are left", left)
	}
}

// TestRestoreMany goes over more than one part of the index, and
// finds every connection again.
func TestRestoreMany(t *testing.T) {
	const n = 20_000
	memory := pages(t, ArenaSize(n))
	before := restored(t, memory, 5e9, Config{NewRate: -1})
	before.fillUDP(n)
	before.each(func(e *store.Entry, h store.Handle) { // holes, for the list of free cells
		if h.Slot%3 == 0 {
			before.remove(h, whatever, 5e9)
		}
	})
	left := before.Stats().Entries
	b := restored(t, memory, 5e9, Config{NewRate: -1})
	if r := b.Stats().Restored; r.Entries != left || r.Torn != 0 {
		t.Errorf("restored %+v, want %d", r, left)
	}
	b.checkOrder()
	b.fillFrom(0x0b000000, n-left, &commit)
	b.checkOrder()
}
