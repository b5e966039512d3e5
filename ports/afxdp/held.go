package afxdp

import "math/bits"

// held is the set of frames that the kernel has of one port, one way: those
// in the fill ring and what the driver took out of it, or those in the TX ring
// and under way. One bit per frame of the UMEM. It is what makes frames
// recoverable: the rings alone do not tell which frames a driver has taken.
type held []uint64

func newHeld(frames int) held { return make(held, (frames+63)/64) }

func (h held) add(frame uint32) { h[frame/64] |= 1 << (frame % 64) }

// remove reports whether the frame was in the set: the kernel may name no
// other.
func (h held) remove(frame uint32) bool {
	bit := uint64(1) << (frame % 64)
	had := h[frame/64]&bit != 0
	h[frame/64] &^= bit
	return had
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
