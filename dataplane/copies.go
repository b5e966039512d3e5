package dataplane

import (
	"github.com/antrail/antrail/packet"
)

// Frames for copies and segments. They are a worker's own, of two sizes.

const (
	// copyBuffer is the bytes of a buffer for copies and segments: an MTU of 3,900.
	copyBuffer = 4096
	copyFrames = 1024
	// largeFrames is how many frames there are for larger copies.
	largeFrames = 64
	// copiesAhead and largeAhead are how many frames a worker takes from the pool at once.
	// largeAhead is small, because the large frame used last is still in the CPU cache.
	copiesAhead = 32
	largeAhead  = 4
)

// stock is the frames of one worker. Ports on any goroutine return them to its pool in batches.
// The worker takes several ahead, so that few packets meet the pool's lock. No other worker takes
// frames from it.
type stock struct {
	pool  *packet.HeapPool
	ahead []*packet.Frame
	n     int // of ahead
}

// newStock makes frames of size bytes, and takes up to ahead of them at once.
func newStock(frames, size, ahead int) stock {
	return stock{pool: packet.NewPool(frames, size), ahead: make([]*packet.Frame, ahead)}
}

// takeFrame is an empty frame; nil if all are in use.
func (s *stock) takeFrame() *packet.Frame {
	if s.n == 0 {
		if s.n = s.pool.Get(s.ahead); s.n == 0 {
			return nil
		}
	}
	s.n--
	return s.ahead[s.n]
}

// frameFor is a free frame for n bytes; nil if none is left.
func (w *worker) frameFor(n int) *packet.Frame {
	if packet.Headroom+n > copyBuffer {
		return w.large.takeFrame()
	}
	return w.copies.takeFrame()
}

// copyFrame makes a copy of a frame; nil if no free frame is left.
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

// segmentFrame is a frame for a segment of n bytes. If none is free, it first sends the queued
// frames, which hold all of them.
func (w *worker) segmentFrame(n int) *packet.Frame {
	f := w.frameFor(n)
	if f == nil {
		w.transmit()
		f = w.frameFor(n)
	}
	return f
}
