package proto

import (
	"math/rand/v2"
	"testing"
)

// TestPack: two words of each side hold all of it, and only words that Pack writes are
// valid.
func TestPack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var sides, got [2]Peer
		for i := range sides {
			sides[i] = Peer{
				random.Uint32(), random.Uint32(), random.Uint32(),
				TCPState(random.IntN(int(TCPTimeWait) + 1)), uint8(random.IntN(maxScale + 1)), scaling(random.IntN(int(unknownScale) + 1)),
			}
		}
		for i := range got {
			w := sides[i].Pack()
			if got[i].Unpack(w); !ValidPeer(w) || ValidPeer(w|1<<(56+random.IntN(8))) {
				t.Fatalf("%+v became %x, which is valid: %v", sides[i], w, ValidPeer(w))
			}
			SequenceOf(&sides[i], &sides[1-i]).Unpack(&got[i], &got[1-i])
		}
		if got != sides {
			t.Fatalf("%+v became %+v", sides, got)
		}
	}
	if p := (Peer{State: TCPTimeWait + 1}); ValidPeer(p.Pack()) {
		t.Error("a state that there is not is valid")
	}
}
