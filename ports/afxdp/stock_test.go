package afxdp

import "testing"

// feed is a kernel that gives frames to a port with so many slots, and a worker that
// takes batches of them.
type feed struct {
	stock
	ring int // waiting
	lost int
}

// arrive has so many frames come, and one be lost for each that has no buffer.
func (f *feed) arrive(n int) {
	got := min(n, f.out-f.ring)
	f.ring += got
	f.lost += n - got
}

// serve takes a batch, and gives the kernel what it is to have.
func (f *feed) serve() {
	for range min(portion, f.ring) {
		f.countReceived()
		f.ring--
	}
	f.received(f.ring)
	for f.wants(portion) >= portion {
		f.out += portion
	}
}

func newFeed(slots int, copied bool) *feed {
	f := &feed{stock: newStock(slots, copied)}
	f.serve()
	return f
}

// calmly has frames come as fast as they are taken.
func (f *feed) calmly(frames int) {
	for range frames / portion {
		f.arrive(portion)
		f.serve()
	}
}

func TestStockShrinksWhenCalm(t *testing.T) {
	f := newFeed(2048, true)
	if f.out != 2048 {
		t.Fatalf("%d frames to begin with, want all 2048", f.out)
	}
	f.calmly(3 * calmRounds * 2048)
	if f.level != leastStock || f.out > leastStock || f.lost > 0 {
		t.Errorf("level %d, %d with the kernel, %d lost; want %d and none lost", f.level, f.out, f.lost, leastStock)
	}
}

func TestStockGrowsForBursts(t *testing.T) {
	f := newFeed(2048, true)
	f.calmly(3 * calmRounds * 2048)
	// Four come for each that is taken: it holds as many as at the beginning.
	for range 2000 / (4 * portion) {
		f.arrive(4 * portion)
		f.serve()
	}
	if f.level != 2048 || f.lost > 0 {
		t.Errorf("level %d, %d lost; want 2048 and none", f.level, f.lost)
	}
}

func TestStockOfAFlood(t *testing.T) {
	f := newFeed(2048, true)
	flood := func(frames int) {
		for range frames / portion {
			f.arrive(4 * portion)
			f.serve()
		}
	}
	flood(2 * pressedRounds * 2048)
	if f.level != leastStock || f.out > leastStock {
		t.Errorf("level %d, %d with the kernel during a flood; want %d", f.level, f.out, leastStock)
	}
	for f.ring > 0 {
		f.serve()
	}
	flood(2048)
	if f.level != 2048 {
		t.Errorf("level %d in a burst after the flood, want 2048", f.level)
	}
}

// TestStockOfAShortRing: a ring of fewer slots than leastStock has no less.
func TestStockOfAShortRing(t *testing.T) {
	f := newFeed(256, true)
	f.calmly(3 * calmRounds * 256)
	if f.level != 256 || f.out != 256 {
		t.Errorf("level %d, %d with the kernel; want 256", f.level, f.out)
	}
}

// TestStockWithoutCopies: a driver that moves frames from the fill ring to a card's,
// which has more slots, is given more until both are full.
func TestStockWithoutCopies(t *testing.T) {
	const slots, card = 256, 1024
	ours, drivers := newRings(slots, 0)
	p := &Port{umem: umemFor(t, 2*card), socket: &socket{fill: *ours}, ledger: &ledger{journal: make(journal, journalWords)}}
	p.rx.held, p.rx.stock = newHeld(2*card), newStock(slots, false)
	moved := 0
	for range 2 * card / slots {
		p.refill()
		for range drivers.readable(card - moved) {
			drivers.read()
			moved++
		}
		drivers.release()
		p.rx.stock.received(0)
	}
	if left := p.socket.fill.pending(); moved != card || left != slots {
		t.Errorf("the card has %d frames and the fill ring %d, want %d and %d", moved, left, card, slots)
	}
	p.umem.give(p.rx.held.drain())
}
