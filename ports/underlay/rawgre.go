package underlay

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// GRE comes by raw sockets, which differ from UDP's in two ways (raw(7)). Over IPv4 the
// outer header is there. And Linux always joins TCP segments inside GRE that came
// together (generic receive offload of the card), while a raw socket says nothing of
// that. The segment is longer than any on the wire, and its checksum is only the
// pseudo-header's sum.

// isRaw says that packets come by raw sockets.
func (p *Port) isRaw() bool { return p.config.Kind.Port() == 0 }

// longest is the most bytes of an inner frame that is taken.
func (p *Port) longest() int {
	if p.isRaw() {
		return packet.LargeBuffer - packet.Headroom
	}
	return ports.MaxFrame(p.config.MTU)
}

// behindIPv4 is what follows an IPv4 header; nothing when that is not whole.
func behindIPv4(b []byte) []byte {
	if h := packet.IPv4(b); h.Valid() {
		return b[h.HeaderLen():]
	}
	return nil
}

// fromRaw is a frame of one packet. If the kernel made the packet of many, the frame is
// to be cut again, into segments as long as this Node's own would be. Nil, with the loss
// counted, when it is neither that nor within the MTU, or no frame is free.
func (p *Port) fromRaw(inner []byte) *packet.Frame {
	long := len(inner) > ports.MaxFrame(p.config.MTU)
	var f *packet.Frame
	switch {
	case !long:
		f = p.spared(inner)
	case p.canJoin():
		f, p.joined[0] = p.joined[0], nil
		f.Reset()
		f.SetBytes(inner)
	}
	if f == nil {
		p.count.CountDrop(ports.RxNoFrame, 1)
		return nil
	}
	packet.FindPartial(f)
	if long && !p.toBeCut(f) {
		p.count.CountDrop(ports.RxTooLong, 1)
		packet.Release([]*packet.Frame{f})
		return nil
	}
	return f
}

// toBeCut makes a frame one that is to be cut into segments within the MTU; false
// when it cannot be.
func (p *Port) toBeCut(f *packet.Frame) bool {
	l := packet.ParseLayers(f.Bytes())
	if l.Proto != packet.ProtoTCP || l.L4 == 0 || !f.Offload.ChecksumPartial {
		return false
	}
	headers := l.L4 - l.L3 + packet.TCP(f.Bytes()[l.L4:]).HeaderLen()
	f.Offload.SegmentSize = uint16(max(0, p.config.MTU-headers))
	return f.Offload.SegmentSize != 0 && packet.AdmitOffload(f, &l)
}
