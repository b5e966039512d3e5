package packettest

import (
	"bytes"

	"github.com/antrail/antrail/packet"
)

// Answer is an end host's reply to a frame: TCP with the given flags, UDP with
// the same payload, or an echo reply.
func Answer(frame []byte, flags uint16) []byte {
	b := bytes.Clone(frame)
	l := packet.ParseLayers(b)
	if l.EtherType == packet.EtherTypeIPv6 {
		ip := packet.IPv6(b[l.L3:])
		src, dst := ip.Src(), ip.Dst()
		ip.SetSrc(dst)
		ip.SetDst(src)
	} else {
		ip := packet.IPv4(b[l.L3:])
		src, dst := ip.Src(), ip.Dst()
		ip.SetSrc(dst)
		ip.SetDst(src)
	}
	switch l.Proto {
	case packet.ProtoICMPv6:
		packet.ICMP(b[l.L4:]).SetType(packet.ICMPv6EchoReply)
	case packet.ProtoICMP:
		packet.ICMP(b[l.L4:]).SetType(packet.ICMPEchoReply)
	case packet.ProtoUDP:
		h := packet.UDP(b[l.L4:])
		sport, dport := h.SrcPort(), h.DstPort()
		h.SetSrcPort(dport)
		h.SetDstPort(sport)
	case packet.ProtoTCP:
		h := packet.TCP(b[l.L4:l.End])
		sport, dport := h.SrcPort(), h.DstPort()
		h.SetSrcPort(dport)
		h.SetDstPort(sport)
		next := h.Seq() + uint32(len(h.Payload()))
		if h.Flags()&(packet.TCPSyn|packet.TCPFin) != 0 {
			next++
		}
		seq := h.Ack()
		if seq == 0 {
			seq = 5000
		}
		h.SetSeq(seq)
		h.SetAck(next)
		h.SetFlags(flags)
	}
	l.SetL4Checksum(b)
	return b
}
