package underlay

import (
	"slices"
	"sync"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// carries is all undone work. The port does it when it fills the outbox, where a segment costs
// its headers and no copy.
const carries = ports.CarriesChecksum | ports.CarriesTCP | ports.CarriesUDP

// letter is a frame on its way out.
type letter struct {
	frame  *packet.Frame
	layers packet.Layers
}

// numLanes is how many callers may Transmit at once; more callers wait.
const numLanes = 4

// lane is the state of one call of Transmit. All lanes send by the same sockets. A worker whose
// port floods the tunnel is in the kernel most of the time. With one lane, the packets of all
// other workers would wait for it there.
type lane struct {
	*Port
	mu      sync.Mutex // Transmit against itself and Close
	out     *outbox
	letters [maxBatch]letter
	order   [maxBatch]uint32
}

// takeLane is a lane for one call of Transmit, which unlocks it.
func (p *Port) takeLane() *lane {
	for i := range p.lanes {
		if p.lanes[i].mu.TryLock() {
			return &p.lanes[i]
		}
	}
	p.lanes[0].mu.Lock()
	return &p.lanes[0]
}

// Transmit encapsulates the frames for their Tunnel.Dst and sends them, cut into segments if
// their senders left that undone. It returns how many frames the kernel accepted. Stats counts
// segments, as on the wire.
func (p *Port) Transmit(batch []*packet.Frame) int {
	l := p.takeLane()
	for chunk := range slices.Chunk(batch, maxBatch) {
		l.transmit(chunk)
	}
	o := l.out
	sent := o.frames
	p.count.Sent(o.datagrams, o.bytes)
	p.count.CountSplit(o.datagrams - o.frames)
	o.frames, o.datagrams, o.bytes = 0, 0, 0
	l.mu.Unlock()
	packet.Release(batch)
	return sent
}

// transmit sends up to maxBatch frames, flow by flow. Each flow has its socket. Consecutive
// frames of one socket share messages and system calls.
func (p *lane) transmit(batch []*packet.Frame) {
	if p.closed {
		p.count.DropFrames(ports.TxClosed, batch...)
		return
	}
	order := p.order[:0] // of letters: the socket, above the place in the batch
	for i, f := range batch {
		l := &p.letters[i]
		if !p.admit(f) {
			continue
		}
		l.frame, l.layers = f, packet.ParseLayers(f.Bytes())
		order = append(order, tunnel.FlowHash(f.Bytes(), &l.layers)%uint32(len(p.senders))<<8|uint32(i))
	}
	slices.Sort(order)
	for i, at := range order {
		if i > 0 && at>>8 != order[i-1]>>8 {
			p.send(p.senders[order[i-1]>>8])
		}
		p.post(&p.letters[at&0xff], p.senders[at>>8])
	}
	if len(order) > 0 {
		p.send(p.senders[order[len(order)-1]>>8])
	}
	clear(p.letters[:len(batch)])
}

// admit says whether a frame may be sent to its destination.
func (p *Port) admit(f *packet.Frame) bool {
	if why := ports.Refusal(f, p.config.MTU, carries); why != ports.None {
		p.count.refuseFrame(why, f)
		if why == ports.TxTooLong {
			p.report(f.Tunnel.Dst.Unmap(), nil, f.Bytes())
		}
		return false
	}
	f.Tunnel.Dst = f.Tunnel.Dst.Unmap()
	switch dst := f.Tunnel.Dst; {
	case !dst.IsValid():
		p.count.loseFrame(ports.TxNoNode, f)
	case !p.sendsTo(dst):
		p.count.loseFrame(ports.TxUnknownNode, f)
	case dst.Is4() != p.config.Local.Is4():
		p.count.loseFrame(ports.TxOtherFamily, f)
	default:
		return true
	}
	return false
}

// post puts a frame's datagrams into the outbox. If the outbox is full, a socket sends its
// messages first.
func (p *lane) post(l *letter, fd int) {
	f := l.frame
	if f.Offload.SegmentSize != 0 {
		p.postSegments(l, fd)
		return
	}
	if !packet.CompleteChecksum(f, &l.layers) {
		p.count.refuseFrame(ports.TxOffload, f)
		return
	}
	if p.takesID(f) {
		p.postTraced(f, fd)
		return
	}
	n := tunnel.HeaderLen + p.out.optionsOf(f)
	if p.out.full(n) {
		p.send(fd)
	}
	p.out.put(f, p.head(f, n), f.Bytes(), 1)
}

// postSegments is post for a frame that must be cut.
func (p *lane) postSegments(l *letter, fd int) {
	f := l.frame
	s, ok := packet.NewSegments(f, &l.layers)
	outer := tunnel.HeaderLen + p.out.optionsOf(f)
	n := outer + s.HeadersLen()
	if !ok || n > headsLen {
		p.count.refuseFrame(ports.TxOffload, f)
		return
	}
	for frames := 1; s.More(); frames = 0 {
		if p.out.full(n) {
			p.send(fd)
		}
		h := p.head(f, n)
		body := s.NextParts(h[outer:])
		p.out.put(f, h, body, frames)
	}
}

// head is n bytes for the headers of a datagram, beginning with the tunnel's.
func (p *lane) head(f *packet.Frame, n int) []byte {
	h := p.out.head(n)
	if p.out.optionsOf(f) > 0 {
		tunnel.Geneve(h).InitOptions(uint32(f.Tunnel.ID), f.Tunnel.Options)
	} else {
		p.config.Kind.Init(h, uint32(f.Tunnel.ID))
	}
	return h
}
