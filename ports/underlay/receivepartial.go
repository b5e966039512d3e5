package underlay

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// An inner packet may come with work undone. Then its checksum is only the pseudo-header's
// sum, and a segment may be longer than any on the wire. Of TCP no socket says so. Of UDP the
// socket says how long the datagrams inside are to be. There are two causes:
//
//   - Between veth links no packet is finished. If the other Node's kernel has put the outer
//     headers in front (ports/offload), the inner packet is as the pod left it.
//   - Linux joins TCP segments inside GRE that came together (generic receive offload of
//     the card).

// longest is the most bytes of an inner frame that is taken.
const longest = packet.LargeBuffer - packet.Headroom

// single is a frame of one datagram. If that is longer than the MTU, or a pod left it to be
// cut, the frame is to be cut. TCP's segments are as long as this Node's own would be. Nil,
// with the loss counted, when it is neither that nor within the MTU, or no frame is free.
func (p *Port) single(inner []byte) *packet.Frame {
	long := len(inner) > ports.MaxFrame(p.config.MTU) || p.in.cuts != 0
	f := p.frameFor(inner, long)
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

// frameFor is a spare frame with these bytes, or a large one; nil when there is none.
func (p *Port) frameFor(inner []byte, long bool) *packet.Frame {
	switch {
	case !long:
		return p.spared(inner)
	case !p.canJoin():
		return nil
	}
	f := p.joined[0]
	p.joined[0] = nil
	f.Reset()
	f.SetBytes(inner)
	return f
}

// toBeCut makes a frame one that is to be cut into segments within the MTU; false
// when it cannot be.
func (p *Port) toBeCut(f *packet.Frame) bool {
	l := packet.ParseLayers(f.Bytes())
	if l.L4 == 0 || !f.Offload.ChecksumPartial {
		return false
	}
	longest := p.config.MTU - (l.L4 - l.L3)
	switch l.Proto {
	case packet.ProtoTCP:
		f.Offload.SegmentSize = uint16(max(0, longest-packet.TCP(f.Bytes()[l.L4:]).HeaderLen()))
	case packet.ProtoUDP:
		if p.in.cuts <= longest-packet.UDPLen {
			f.Offload.SegmentSize = uint16(p.in.cuts)
		}
	}
	return f.Offload.SegmentSize != 0 && packet.AdmitOffload(f, &l)
}

// isOnePacket says whether a message that seems to be several datagrams is one. Then the UDP
// packet inside is as long as all of them.
func (p *Port) isOnePacket(message []byte) bool {
	inner, _, _, why := p.open(message)
	if why != tunnel.None {
		return false
	}
	l := packet.ParseLayers(inner)
	return l.Proto == packet.ProtoUDP && l.L4 != 0 && l.Frag == 0 && l.End == len(inner)
}
