package dataplane

import (
	"github.com/antrail/antrail/dataplane/sched"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/packet"
)

// A port's turn ends after turnSegments segments. A frame that is to be cut counts as the
// packets that it stands for, because it has to be cut. That is done by the worker, the
// tunnel, or the kernel on the worker's time. The frames of a batch that the turn does
// not reach wait for the port's next turns. Nothing more is received from the port
// meanwhile, so its packets stay in order.
//
// A frame of more segments than that is divided into frames of turnSegments segments
// each, which walk one a turn. Its sender has paid for one frame, and each of the
// other ports has its turn between two parts of it.

// turnSegments is the most segments in a turn: those of leastBatch frames of 64 kB,
// the fewest that a port may bring in a batch. They take the kernel about a
// millisecond where no card cuts. With 128, a stream between Nodes cost about a third
// more processor time: the tunnel's messages were shorter.
const turnSegments = leastBatch * 48

// backlog is the part of a port's batch that its turns have not reached yet. The
// worker that receives from the port has it, and hands it over with the port.
type backlog struct {
	room   [batchSize]*packet.Frame // that frames are received into
	frames []*packet.Frame          // part of room
	full   bool                     // the batch had as many frames as the port may bring
	took   int64                    // nanoseconds that the batch's turns have taken so far

	// whole is the frame that is being divided, and parts are its next ones. The
	// first place of frames is then for the part of a turn.
	whole *packet.Frame
	parts packet.Segments
}

// empty says that the port may be asked for a batch.
func (b *backlog) empty() bool { return len(b.frames) == 0 }

// fitting is how many frames fit in one turn: 0 when the first one does not.
func (b *backlog) fitting() int {
	if b.whole != nil {
		return 0
	}
	segments := 0
	for i, f := range b.frames {
		segments += weight(f)
		if segments > turnSegments {
			return i
		}
	}
	return len(b.frames)
}

// weight is for how many packets a frame counts in a turn: one if the walk refuses to
// have it cut.
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

// pop takes n frames off the front.
func (b *backlog) pop(n int) []*packet.Frame {
	frames := b.frames[:n]
	b.frames = b.frames[n:]
	return frames
}

// serveTurn walks the frames of one turn from a port's backlog, which is not empty.
// It returns how many.
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
	n = max(n, 1) // the walk drops what cannot be divided
	w.account.received.Add(uint64(n))
	return b.pop(n)
}

// divide begins to divide the first frame; false when it cannot be cut.
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

// nextPart takes the next part of the frame that is being divided. If no free frame
// is there for the part, it drops the rest of the divided frame and takes none.
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

// endDivision gives the divided frame back.
func (b *backlog) endDivision(w *worker) {
	w.release(b.whole)
	b.whole, b.parts = nil, packet.Segments{}
}

// finish walks what a port that is gone has left. No other worker has the port.
func (w *worker) finish(sp *switchPort) {
	w.busy.Lock()
	defer w.busy.Unlock()
	w.now = w.sw.clock()
	for p := (&polled{switchPort: sp}); !p.backlog.empty(); {
		w.serveTurn(p)
	}
}
