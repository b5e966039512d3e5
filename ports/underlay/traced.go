package underlay

import (
	"golang.org/x/sys/unix"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// A frame whose walk is watched takes its id along in the tunnel's header
// (tunnel/walkid.go). It is a message of its own. Nothing may become of it that
// would not have without the id: where the longer datagram does not fit, the id
// stays behind. So it does where entries have put options of their own there.

// takesID says whether a frame's id goes with it. There must be an id, a kind of tunnel
// that can, and room in what the inner MTU leaves.
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

// withoutID sends message i once more, whose way is too narrow with the id.
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
