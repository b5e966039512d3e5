package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// A live-traced frame carries its walk id in the tunnel's header (tunnel/walkid.go). It is a
// separate message. The id must not change the frame's treatment. So the id is omitted if the
// longer datagram does not fit, or if entries have set their own options.

// takesID says whether a frame's id goes with it. The frame must have an id, the kind of tunnel
// must support ids, and the inner MTU must leave room.
func (p *Port) takesID(f *packet.Frame) bool {
	return f.Tunnel.Trace != 0 && f.Tunnel.Options == "" && p.config.Kind.CarriesTrace() && f.Len()+tunnel.TraceLen <= ports.MaxFrame(p.config.MTU)
}

// postTraced puts a frame with its id into the outbox.
func (p *lane) postTraced(f *packet.Frame, fd int) {
	const n = tunnel.HeaderLen + tunnel.TraceLen
	if p.out.full(n) {
		p.send(fd)
	}
	o := p.out
	h := o.head(n)
	tunnel.Geneve(h).InitTraced(uint32(f.Tunnel.ID), f.Tunnel.Trace)
	if o.n > 0 {
		o.gsoMessages[o.n-1].ended = true
	}
	o.put(f, h, f.Bytes(), 1)
	t := &o.gsoMessages[o.n-1]
	t.ended, t.walkID = true, tunnel.TraceLen
}

// withoutID sends message i again without its id, because its way is too narrow for it.
func (p *lane) withoutID(fd, i int) {
	o := p.out
	t := &o.gsoMessages[i]
	h := o.part(t.first)
	vni := tunnel.Geneve(h).VNI()
	h = h[t.walkID:]
	p.config.Kind.Init(h, vni)
	o.setPart(t.first, h)
	o.setParts(i, t.first, 2, 0)
	t.bytes, t.walkID = t.bytes-t.walkID, 0
	switch _, err := o.sent.send(fd, i, i+1); err {
	case nil:
		o.countSent(t.frames(), 1, t.bytes, 0)
	case unix.EMSGSIZE:
		p.tooLong(i, t.first, t.frames(), true)
	default:
		p.lose(err, i, t.first, 1)
	}
}
