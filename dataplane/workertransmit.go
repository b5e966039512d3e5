package dataplane

import (
	"maps"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// Frames are queued for ports until the batch ends. Then they are transmitted.
//
// A frame has checksums and segments that its sender left undone. If a port cannot pass them on,
// as on AF_XDP, the worker completes them here, once for each output.

// queue queues a frame for a port, and gives up its ownership. If the port does not pass on what
// the sender left undone, queue completes it first.
func (w *worker) queue(p *switchPort, f *packet.Frame) {
	if p.carries.All(f) {
		w.enqueue(p, f)
	} else {
		w.complete(p, f)
	}
}

// enqueue appends a frame to the port's queue of this batch.
func (w *worker) enqueue(p *switchPort, f *packet.Frame) {
	q := w.lastQueue
	if w.lastOut != p {
		if q = w.out[p]; q == nil {
			q = new([]*packet.Frame)
			w.out[p] = q
		}
		w.lastOut, w.lastQueue = p, q
	}
	if len(*q) == 0 {
		w.ready = append(w.ready, p)
	}
	*q = append(*q, f)
	w.packetCounters.queued++
}

// complete fills in a frame's checksum, or cuts the frame into segments, and queues the results.
func (w *worker) complete(p *switchPort, f *packet.Frame) {
	l := packet.ParseLayers(f.Bytes())
	why := telemetry.DropBadOffload
	if f.Offload.SegmentSize != 0 {
		why = w.segment(p, f, &l)
	} else if packet.CompleteChecksum(f, &l) {
		w.enqueue(p, f)
		return
	}
	if why != telemetry.NotDropped {
		w.countLateDrop(f, why)
	}
	w.release(f)
}

// segment sends a frame's segments. It returns why the rest of them is dropped.
func (w *worker) segment(p *switchPort, f *packet.Frame, l *packet.Layers) telemetry.DropReason {
	s, ok := packet.NewSegments(f, l)
	if !ok {
		return telemetry.DropBadOffload
	}
	w.packetCounters.cut-- // the first is the packet itself
	for s.More() {
		w.packetCounters.cut++
		one := w.segmentFrame(s.NextLen())
		if one == nil {
			return telemetry.DropNoFrame
		}
		if !s.Next(one) {
			w.release(one)
			return telemetry.DropBadOffload
		}
		w.enqueue(p, one)
	}
	return telemetry.NotDropped
}

// transmit hands the queued frames to their ports.
func (w *worker) transmit() {
	for _, p := range w.ready {
		q := w.out[p]
		sent := p.port.Transmit(*q)
		p.port.Flush()
		p.account.handedOver(len(*q), sent)
		clear(*q)
		*q = (*q)[:0]
	}
	w.ready = w.ready[:0]
}

// flush publishes what the batch counted, transmits the queued frames and releases the others.
func (w *worker) flush() {
	w.endBatch()
	w.batchCounts.Publish(w.now)
	w.dropRing.Publish()
	w.transmit()
	if set := w.sw.ports.Load(); set != w.seen {
		w.seen = set
		w.lastOut, w.lastQueue = nil, nil
		maps.DeleteFunc(w.out, func(p *switchPort, _ *[]*packet.Frame) bool { return set.byNumber[p.no] != p })
	}
	packet.Release(w.done)
	clear(w.done)
	w.done = w.done[:0]
}

// release releases a frame with the others of this batch.
func (w *worker) release(f *packet.Frame) { w.done = append(w.done, f) }
