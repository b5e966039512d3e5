package dataplane

import (
	"github.com/antrail/antrail/packet"
)

// Frames for copies and segments. They are a worker's own, of two sizes.

const (
	// copyBuffer is the bytes of a buffer for copies and segments: an MTU of 3,900.
	copyBuffer = 4096
	copyFrames = 1024
	// largeFrames is how many there are for copies of what does not fit there.
	largeFrames = 64
	// copiesAhead and largeAhead are how many a worker takes at once. Of large ones
	// it is few: the one used last is still in the cache.
	copiesAhead = 32
	largeAhead  = 4
)

// stock is frames that one worker uses. Ports give them back to its pool, from any
// goroutine, by the batch. The worker takes some ahead, so that no packet meets the
// pool's lock. Nobody else takes any: the worker has all there are.
type stock struct {
	pool  *packet.HeapPool
	ahead []*packet.Frame
	n     int // of ahead
}

// newStock is frames whose buffers are size bytes, some of which are taken at once.
func newStock(frames, size, ahead int) stock {
	return stock{pool: packet.NewPool(frames, size), ahead: make([]*packet.Frame, ahead)}
}

// takeFrame is an empty frame; nil when all are under way.
func (s *stock) takeFrame() *packet.Frame {
	if s.n == 0 {
		if s.n = s.pool.Get(s.ahead); s.n == 0 {
			return nil
		}
	}
	s.n--
	return s.ahead[s.n]
}

// frameFor is a free frame for n bytes; nil when none is left.
func (w *worker) frameFor(n int) *packet.Frame {
	if packet.Headroom+n > copyBuffer {
		return w.large.takeFrame()
	}
	return w.copies.takeFrame()
}

// copyFrame makes a copy of a frame; nil when no free frame is left.
func (w *worker) copyFrame(f *packet.Frame) *packet.Frame {
	c := w.frameFor(f.Len())
	if c == nil {
		return nil
	}
	if !c.CopyFrom(f) {
		w.release(c)
		return nil
	}
	return c
}

// segmentFrame is a frame for a segment of n bytes. When there is none, what is
// queued is sent first, for that is where they are.
func (w *worker) segmentFrame(n int) *packet.Frame {
	f := w.frameFor(n)
	if f == nil {
		w.transmit()
		f = w.frameFor(n)
	}
	return f
}
