package afxdp

import "math/bits"

// held is the set of frames that the kernel has of one port, in one direction. The receiving set
// has the frames in the fill ring and those that the driver took out of it. The sending set has
// the frames in the TX ring and under way. There is one bit per frame of the UMEM.
//
// The sets make frames recoverable, because the rings alone do not show which frames a driver has
// taken. A port's sets lie in its ledger, where another process finds them.
type held []uint64

func newHeld(frames int) held { return make(held, words(frames)) }

// words is how many words a set of frames takes.
func words(frames int) int { return (frames + 63) / 64 }

func (h held) add(frame uint32) { h[frame/64] |= 1 << (frame % 64) }

func (h held) has(frame uint32) bool { return h[frame/64]&(1<<(frame%64)) != 0 }

// remove reports whether the frame was in the set. The kernel must not name any other frame.
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

// drain empties the set and returns its frames.
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
