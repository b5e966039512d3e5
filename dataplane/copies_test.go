package dataplane

import (
	"testing"

	"github.com/antrail/antrail/packet"
)

// TestStock: a worker gets every frame of a stock, each once, and those that were
// given back again, though it takes several at once.
func TestStock(t *testing.T) {
	const frames = 10
	s := newStock(frames, 512, 4)
	under := map[*packet.Frame]bool{}
	takeAll := func(want int) (all []*packet.Frame) {
		t.Helper()
		for f := s.takeFrame(); f != nil; f = s.takeFrame() {
			if under[f] {
				t.Fatal("a frame was handed out twice")
			}
			if f.Len() != 0 || f.Headroom() != packet.Headroom {
				t.Errorf("a frame of %d bytes with a headroom of %d was handed out", f.Len(), f.Headroom())
			}
			under[f] = true
			all = append(all, f)
		}
		if len(all) != want {
			t.Fatalf("%d frames were handed out, want %d", len(all), want)
		}
		return all
	}
	back := takeAll(frames)
	for _, n := range []int{1, 3, 4, 5, frames} {
		for _, f := range back[:n] {
			f.SetLen(60)
			delete(under, f)
		}
		packet.Release(back[:n])
		back = append(takeAll(n), back[n:]...)
	}
}
