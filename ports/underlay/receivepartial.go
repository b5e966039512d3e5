package underlay

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// An inner packet may arrive with work undone. Then its checksum is only the pseudo-header's sum,
// and a segment may be longer than any on the wire. For TCP, no socket reports that. For UDP, the
// socket reports the length of the datagrams inside. There are two causes:
//
//  - Packets between veth links are never completed. If the other Node's kernel has added the
//    outer headers (ports/offload), the inner packet is as the pod left it.
//  - Linux joins TCP segments inside GRE that came together (generic receive offload of the
//    card).

// longest is the largest number of bytes in an accepted inner frame.
const longest = packet.LargeBuffer - packet.Headroom

// single is a frame of one datagram. If that exceeds the MTU, or a pod left it to be cut, the
// frame is marked to be cut. TCP segments get the length of this Node's own. If the frame can
// neither be cut nor fits the MTU, or no frame is free, single counts the drop and returns nil.
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

// frameFor is a spare frame with these bytes, or a large one; nil if there is none.
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

// toBeCut marks a frame to be cut into segments within the MTU. It returns false if the frame
// cannot be cut.
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

// isOnePacket says whether a message that looks like several datagrams is one. Then the UDP
// packet inside is as long as all of them.
func (p *Port) isOnePacket(message []byte) bool {
	inner, _, _, why := p.open(message)
	if why != tunnel.None {
		return false
	}
	l := packet.ParseLayers(inner)
	return l.Proto == packet.ProtoUDP && l.L4 != 0 && l.Frag == 0 && l.End == len(inner)
}
