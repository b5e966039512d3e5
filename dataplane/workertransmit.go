package dataplane

import (
	"maps"

	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// Frames that are queued for ports, until the batch ends and they are transmitted.
//
// A frame carries checksums and segments that its sender left undone. A port may lack
// them, as one on AF_XDP does. Then the worker does this work here, once for each output.

// queue sends a frame, which belongs to the port from here on. Work that its
// sender left undone is done first when the port does not pass it on.
func (w *worker) queue(p *switchPort, f *packet.Frame) {
	if p.carries.All(f) {
		w.enqueue(p, f)
	} else {
		w.complete(p, f)
	}
}

// enqueue puts a frame behind the others of this batch.
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

// complete fills in a frame's checksum, or cuts it into segments, and sends
// what comes of it.
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

// flush tells what the batch counted, transmits what it queued and gives the
// rest back.
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

// release gives a frame back with the others of this batch.
func (w *worker) release(f *packet.Frame) { w.done = append(w.done, f) }
