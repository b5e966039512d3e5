package dataplane

import (
	"github.com/antrail/antrail/dataplane/sched"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// A port's turn ends after turnSegments segments.
//
//  1. A coalesced frame counts as its segments, because it has to be cut. The worker, the tunnel,
//     or the kernel does that on the worker's time.
//  2. The frames of a batch that the turn does not reach wait for the port's next turns. Nothing
//     more is received from the port meanwhile, so its packets stay in order.
//  3. A frame of more segments is divided into frames of turnSegments segments, one for each
//     turn. Its sender has paid for one frame. So every other port has its turn between two parts
//     of it.

// turnSegments is the limit for one turn: the segments of leastBatch frames of 64 kB, the
// smallest batch that a port may bring. They take the kernel about a millisecond if no card cuts
// them. With a limit of 128, a stream between Nodes cost about a third more processor time,
// because the tunnel's messages were shorter.
const turnSegments = leastBatch * 48

// backlog is the part of a port's batch that its turns have not reached yet. It belongs to the
// worker that receives from the port, and moves with the port.
type backlog struct {
	room   [batchSize]*packet.Frame // where frames are received
	frames []*packet.Frame          // part of room
	full   bool                     // the batch had as many frames as the port may bring
	took   int64                    // nanoseconds that the batch's turns have taken so far

	// whole is the frame that is being divided; parts are its remaining parts. frames[0] then
	// holds the part of the current turn.
	whole *packet.Frame
	parts packet.Segments
}

// empty says that the next batch may be received from the port.
func (b *backlog) empty() bool { return len(b.frames) == 0 }

// fitting is how many frames fit in one turn; 0 if the first one does not.
func (b *backlog) fitting() int {
	if b.whole != nil {
		return 0
	}
	segments := 0
	for i, f := range b.frames {
		segments++
		if f.Offload.SegmentSize != 0 {
			segments += weight(f) - 1
		}
		if segments > turnSegments {
			return i
		}
	}
	return len(b.frames)
}

// weight is how many packets of a turn a frame counts for. A frame that the walk refuses to cut
// counts as one.
func weight(f *packet.Frame) int {
	n := packet.SegmentCount(f)
	if n <= turnSegments {
		return n
	}
	if l := packet.ParseLayers(f.Bytes()); packet.TooManySegments(f, &l) {
		return 1
	}
	return n
}

// pop removes n frames from the front.
func (b *backlog) pop(n int) []*packet.Frame {
	frames := b.frames[:n]
	b.frames = b.frames[n:]
	return frames
}

// serveTurn walks the frames of one turn from a port's non-empty backlog. It returns their
// number.
func (w *worker) serveTurn(p *polled) int {
	w.account = &p.account
	frames := w.turn(p)
	for _, f := range frames[:min(len(frames), sched.FewPackets)] { // beyond fewPackets the sum does not matter
		w.bytes += f.Len()
	}
	w.serveAll(p, frames)
	w.settlePacketCounters()
	w.flush()
	return len(frames)
}

// turn takes the frames of one turn from a port's backlog.
func (w *worker) turn(p *polled) []*packet.Frame {
	b := &p.backlog
	n := b.fitting()
	if n == 0 && (b.whole != nil || b.divide()) {
		return w.nextPart(p)
	}
	n = max(n, 1) // the walk drops a frame that cannot be divided
	w.account.received.Add(uint64(n))
	return b.pop(n)
}

// divide starts to divide the first frame. It returns false if the frame cannot be cut.
func (b *backlog) divide() (ok bool) {
	f := b.frames[0]
	l := packet.ParseLayers(f.Bytes())
	if !packet.AdmitOffload(f, &l) {
		return false
	}
	if b.parts, ok = packet.NewParts(f, &l, turnSegments); ok {
		b.whole = f
	}
	return ok
}

// nextPart takes the next part of the frame that is being divided. If no free frame is left for
// the part, it drops the rest of the divided frame and returns none.
func (w *worker) nextPart(p *polled) []*packet.Frame {
	b := &p.backlog
	if b.parts.Begun() {
		w.packetCounters.cut++ // the first part is the packet itself
	} else {
		w.account.received.Add(1)
	}
	f := w.segmentFrame(b.parts.NextLen())
	if f == nil || !b.parts.Next(f) {
		w.walk.inPort = p.no
		w.countDrop(b.whole, &telemetry.Drop{Reason: telemetry.DropNoFrame})
		b.endDivision(w)
		b.pop(1)
		return nil
	}
	b.frames[0] = f
	if b.parts.More() {
		return b.frames[:1]
	}
	b.endDivision(w)
	return b.pop(1)
}

// endDivision releases the divided frame.
func (b *backlog) endDivision(w *worker) {
	w.release(b.whole)
	b.whole, b.parts = nil, packet.Segments{}
}

// finish walks the remaining frames of a removed port. No other worker has the port.
func (w *worker) finish(sp *switchPort) {
	w.busy.Lock()
	defer w.busy.Unlock()
	w.now = w.sw.clock()
	for p := (&polled{switchPort: sp}); !p.backlog.empty(); {
		w.serveTurn(p)
	}
}
