package dataplane

import "github.com/antrail/antrail/packet"

// Work that a sender left undone goes with the frame as long as it can. It is
// done here, once per frame and output, for a port that does not pass it on, such
// as one on AF_XDP.

// complete fills in a frame's checksum, or cuts it into segments, and sends
// what comes of it.
func (w *worker) complete(p *switchPort, f *packet.Frame) {
	l := packet.ParseLayers(f.Bytes())
	if f.Offload.SegmentSize != 0 {
		w.segment(p, f, &l)
		w.release(f)
		return
	}
	if !packet.CompleteChecksum(f, &l) {
		w.loseLate(f, DropBadOffload)
		w.release(f)
		return
	}
	w.enqueue(p, f)
}

// segment sends a frame's segments.
func (w *worker) segment(p *switchPort, f *packet.Frame, l *packet.Layers) {
	s, ok := packet.NewSegments(f, l)
	if !ok {
		w.loseLate(f, DropBadOffload)
		return
	}
	w.sums.cut-- // the first is the packet itself
	for s.More() {
		w.sums.cut++
		one := w.segmentFrame(s.NextLen())
		if one == nil {
			w.loseLate(f, DropNoFrame)
			return
		}
		if !s.Next(one) {
			w.release(one)
			w.loseLate(f, DropBadOffload)
			return
		}
		w.enqueue(p, one)
	}
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
