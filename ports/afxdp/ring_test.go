package afxdp

import (
	"math"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// newRings is the two sides of one ring, as kernel and switch see it, both
// words starting at the same value.
func newRings(size int, start uint32) (producer, consumer *ring[uint64]) {
	words := [3]uint32{start, start, 0}
	slots := make([]uint64, size)
	side := func() *ring[uint64] {
		return &ring[uint64]{
			producer: &words[0], consumer: &words[1], flags: &words[2],
			slots: slots, mask: uint32(size - 1), local: start, seen: start,
		}
	}
	return side(), side()
}

func TestRingFullAndEmpty(t *testing.T) {
	for _, start := range []uint32{0, 1, math.MaxUint32 - 1, math.MaxUint32} {
		p, c := newRings(4, start)
		if n := c.readable(4); n != 0 {
			t.Fatalf("start %#x: %d slots readable of an empty ring", start, n)
		}
		for i := range 3 {
			if n := p.writable(8); n != 4-i {
				t.Fatalf("start %#x: %d slots writable after %d, want %d", start, n, i, 4-i)
			}
			p.write(uint64(i))
		}
		if n := c.readable(4); n != 0 {
			t.Fatalf("start %#x: %d slots readable before submit", start, n)
		}
		p.submit()
		if n := p.pending(); n != 3 {
			t.Fatalf("start %#x: %d slots pending, want 3", start, n)
		}
		var got []uint64
		for range c.readable(2) {
			got = append(got, c.read())
		}
		if n := p.writable(8); n != 1 {
			t.Fatalf("start %#x: %d slots writable before release, want 1", start, n)
		}
		c.release()
		if n := p.writable(8); n != 3 {
			t.Fatalf("start %#x: %d slots writable after release, want 3", start, n)
		}
		if !slices.Equal(got, []uint64{0, 1}) {
			t.Fatalf("start %#x: read %v, want [0 1]", start, got)
		}
	}
}

// One goroutine produces and one consumes, over the wrap of the words: every
// number comes once and in order. (With -race this also checks the ordering.)
func TestRingBetweenGoroutines(t *testing.T) {
	const total = 200_000
	p, c := newRings(64, math.MaxUint32-1000)
	var group sync.WaitGroup
	group.Go(func() {
		for next := uint64(0); next < total; {
			for range p.writable(int(min(7, total-next))) {
				p.write(next)
				next++
			}
			p.submit()
		}
	})
	for want := uint64(0); want < total; {
		for range c.readable(64) {
			if got := c.read(); got != want {
				t.Fatalf("read %d, want %d", got, want)
			}
			want++
		}
		c.release()
	}
	group.Wait()
}

func TestHeld(t *testing.T) {
	const frames = 130
	h := newHeld(frames)
	all := []uint32{0, 1, 63, 64, 65, 127, 128, 129}
	for _, f := range all {
		h.add(f)
	}
	if !h.remove(64) || h.remove(64) || h.remove(2) {
		t.Error("remove does not tell what was in the set")
	}
	if got, want := h.drain(), []uint32{0, 1, 63, 65, 127, 128, 129}; !slices.Equal(got, want) {
		t.Errorf("drained %v, want %v", got, want)
	}
	if got := h.drain(); len(got) != 0 {
		t.Errorf("drained %v of an empty set", got)
	}
}

// The kernel's descriptors are checked against the memory.
func TestDescriptorsAreChecked(t *testing.T) {
	u := umemFor(t, 4)
	for _, c := range []struct {
		name   string
		d      unix.XDPDesc
		offset int // -1 when it is to be refused
	}{
		{"usual", unix.XDPDesc{Addr: 2*FrameSize + 256, Len: 1514}, 256},
		{"to the last byte", unix.XDPDesc{Addr: 3*FrameSize + 256, Len: FrameSize - 256}, 256},
		{"across the end", unix.XDPDesc{Addr: 2*FrameSize + 256, Len: FrameSize - 255}, -1},
		{"beyond the memory", unix.XDPDesc{Addr: 4 * FrameSize, Len: 60}, -1},
		{"far beyond", unix.XDPDesc{Addr: math.MaxUint64, Len: math.MaxUint32}, -1},
	} {
		f := u.receive(c.d)
		switch {
		case f == nil && c.offset >= 0:
			t.Errorf("%s: refused", c.name)
		case f != nil && (f.Headroom() != c.offset || f.Len() != int(c.d.Len) || address(f) != c.d.Addr):
			t.Errorf("%s: headroom %d, %d bytes", c.name, f.Headroom(), f.Len())
		case f != nil && c.offset < 0:
			t.Errorf("%s: taken", c.name)
		}
	}
}
