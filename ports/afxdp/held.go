package afxdp

import "math/bits"

// held is the set of frames that the kernel has of one port, one way. One way has the
// frames in the fill ring and what the driver took out of it. The other way has those in
// the TX ring and under way. One bit per frame of the UMEM. It is what makes frames
// recoverable: the rings alone do not tell which frames a driver has taken. A port's lie
// in its ledger, where another process finds them.
type held []uint64

func newHeld(frames int) held { return make(held, words(frames)) }

// words is how many words of a set so many frames take.
func words(frames int) int { return (frames + 63) / 64 }

func (h held) add(frame uint32) { h[frame/64] |= 1 << (frame % 64) }

func (h held) has(frame uint32) bool { return h[frame/64]&(1<<(frame%64)) != 0 }

// remove reports whether the frame was in the set: the kernel may name no
// other.
func (h held) remove(frame uint32) bool {
	bit := uint64(1) << (frame % 64)
	had := h[frame/64]&bit != 0
	h[frame/64] &^= bit
	return had
}

// join adds another set, and says whether the two had no frame in common.
func (h held) join(other held) (apart bool) {
	apart = true
	for i, word := range other {
		apart = apart && h[i]&word == 0
		h[i] |= word
	}
	return apart
}

// count is how many frames are in the set.
func (h held) count() (n int) {
	for _, word := range h {
		n += bits.OnesCount64(word)
	}
	return n
}

// drain empties the set and returns what was in it.
func (h held) drain() []uint32 {
	var frames []uint32
	for i, word := range h {
		for ; word != 0; word &= word - 1 {
			frames = append(frames, uint32(i*64+bits.TrailingZeros64(word)))
		}
		h[i] = 0
	}
	return frames
}
