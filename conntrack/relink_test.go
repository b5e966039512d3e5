package conntrack

import (
	"testing"
	"time"
)

// TestRestoreFindsTwins: of connections with the same key, one is taken over.
func TestRestoreFindsTwins(t *testing.T) {
	const n = 200
	memory := pages(t, ArenaSize(n+n/16)) // not crowded
	restored(t, memory, 5e9, Config{NewRate: -1}).fillUDP(n)
	_, cells, err := lay(memory)
	if err != nil {
		t.Fatal(err)
	}
	twin := func(slot, of int, dirs ...int) {
		for _, dir := range dirs {
			for i := range cells[of].keys[dir] {
				cells[slot].keys[dir][i].Store(cells[of].keys[dir][i].Load())
			}
		}
		fixed := cells[slot].fixedWords()
		cells[slot].sum.Store(checksum(&fixed))
	}
	torn := 0
	for i := range maxChain + 20 { // more than a chain would take
		twin(2+i, 1, original, reply)
		torn++
	}
	twin(150, 151, original)
	twin(152, 153, reply)
	torn += 2
	for i := range cells[160].keys[original] { // both keys of 161 are the reply key of 160
		w := cells[160].keys[reply][i].Load()
		cells[161].keys[original][i].Store(w)
		cells[161].keys[reply][i].Store(w)
	}
	twin(161, 160)
	torn++

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
	before.each(func(e *entry, h handle) { // holes, for the list of free cells
		if h.slot%3 == 0 {
			before.remove(h, whatever, 5e9)
		}
	})
	left := before.Stats().Entries
	b := restored(t, memory, 5e9, Config{NewRate: -1})
	if r := b.Stats().Restored; b.index.parts() < 2 || r.Entries != left || r.Torn != 0 {
		t.Errorf("restored %+v in %d parts, want %d", r, b.index.parts(), left)
	}
	b.checkOrder()
	b.fillFrom(0x0b000000, n-left, &commit)
	b.checkOrder()
}
