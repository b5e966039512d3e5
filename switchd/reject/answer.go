package reject

import (
	"net/netip"

	"github.com/antrail/antrail/packet"
)

// The answers to rejected and too long packets, as frames.

const (
	replyTTL = 64
	// quoted4 and quoted6 are how many bytes of a packet an ICMP error carries. An error has at
	// most 576 bytes (RFC 1812, section 4.3.2.3), in IPv6 the smallest MTU (RFC 4443, section 2.4).
	quoted4 = 576 - packet.IPv4Len - packet.ICMPLen
	quoted6 = 1280 - packet.IPv6Len - packet.ICMPLen
	// minMTU and minMTU6 are the sizes that every path must support (RFC 8201, section 4). For
	// IPv4 it is the size that hosts accept whole (RFC 791).
	minMTU  = 576
	minMTU6 = 1280
)

// codes are the codes of "destination unreachable", for ICMP and ICMPv6.
type codes struct{ v4, v6 uint8 }

var (
	portUnreachable = codes{3, 4}  // RFC 792; RFC 4443, section 3.1
	prohibited      = codes{10, 1} // RFC 1122, section 3.2.2.1; RFC 4443, section 3.1
)

// rejected is a frame to reject.
type rejected struct {
	frame []byte
	packet.Layers
}

// rejectable reads a frame to reject. It is false if the frame must not be answered: a reset, or
// one that is not answerable.
func rejectable(frame []byte) (r rejected, ok bool) {
	r = rejected{frame, packet.ParseLayers(frame)}
	if !r.answerable() {
		return r, false
	}
	return r, r.Proto != packet.ProtoTCP || r.L4 != 0 && r.tcp().Flags()&packet.TCPRst == 0
}

// rejection is the answer to a frame that is rejectable.
func (r *rejected) rejection(why codes) []byte {
	if r.Proto == packet.ProtoTCP {
		return r.reset()
	}
	return r.unreachable(why)
}

// answerable reports whether an answer may be sent. The packet must be sound, between two hosts,
// and neither a later fragment nor an ICMP error (RFC 1122, section 3.2.2; RFC 4443, section
// 2.4).
func (r *rejected) answerable() bool {
	const group = 1 // of an Ethernet address's first byte
	if r.End == 0 || r.Frag&packet.FragLater != 0 || r.frame[0]&group != 0 {
		return false
	}
	switch r.EtherType {
	case packet.EtherTypeIPv4, packet.EtherTypeIPv6:
	default:
		return false
	}
	src, dst := r.ends()
	return dst.IsGlobalUnicast() && src.IsGlobalUnicast() && !r.isError()
}

// isError reports whether the packet is an ICMP error, or may be one.
func (r *rejected) isError() bool {
	switch {
	case r.v6() && r.Proto == packet.ProtoICMPv6:
		return r.L4 == 0 || r.frame[r.L4] < icmpv6Informational || r.frame[r.L4] == icmpv6Redirect
	case r.v6() && r.Proto == 0:
		return true // extension headers that do not fit hide the type
	case !r.v6() && r.Proto == packet.ProtoICMP:
		return r.L4 == 0 || packet.ICMPError(r.frame[r.L4])
	}
	return false
}

// ICMPv6 types below icmpv6Informational are errors (RFC 4443, section 2.1). A
// redirect is not, but must not be answered either (section 2.4, e.2).
const (
	icmpv6Informational = 128
	icmpv6Redirect      = 137
)

func (r *rejected) v6() bool { return r.EtherType == packet.EtherTypeIPv6 }

// ends are the packet's addresses.
func (r *rejected) ends() (src, dst netip.Addr) {
	if r.v6() {
		ip := packet.IPv6(r.frame[r.L3:])
		return ip.Src(), ip.Dst()
	}
	ip := packet.IPv4(r.frame[r.L3:])
	return ip.Src(), ip.Dst()
}

// tcp is the segment of a packet of TCP.
func (r *rejected) tcp() packet.TCP { return packet.TCP(r.frame[r.L4:r.End]) }

// reset answers a TCP segment (RFC 9293, section 3.5.2, group 1).
func (r *rejected) reset() []byte {
	in := r.tcp()
	a := r.reply(packet.ProtoTCP, packet.TCPLen)
	out := packet.TCP(a.payload)
	out.SetSrcPort(in.DstPort())
	out.SetDstPort(in.SrcPort())
	out.SetHeaderLen(packet.TCPLen)
	if in.Flags()&packet.TCPAck != 0 {
		out.SetSeq(in.Ack())
		out.SetFlags(packet.TCPRst)
	} else {
		out.SetAck(in.Seq() + segmentLen(in))
		out.SetFlags(packet.TCPRst | packet.TCPAck)
	}
	out.SetChecksum(packet.Checksum(out, a.pseudo))
	return a.frame
}

// segmentLen is SEG.LEN: the payload's bytes, and one each for SYN and FIN.
func segmentLen(in packet.TCP) uint32 {
	n := uint32(len(in.Payload()))
	for _, flag := range []uint16{packet.TCPSyn, packet.TCPFin} {
		if in.Flags()&flag != 0 {
			n++
		}
	}
	return n
}

// unreachable answers "destination unreachable".
func (r *rejected) unreachable(why codes) []byte {
	if r.v6() {
		return r.icmp(packet.ICMPv6Unreachable, why.v6, 0)
	}
	return r.icmp(packet.ICMPUnreachable, why.v4, 0)
}

// tooBig is the answer with the largest IP packet for a frame's sender. It is "fragmentation needed"
// (RFC 1191, section 4) or "packet too big" (RFC 4443, section 3.2). It is nil if the sender must
// not be answered, or lets routers fragment the packet. It never gives less than every path must
// support, because hosts and conntrack ignore that (RFC 8201, section 4).
func tooBig(frame []byte, mtu int) []byte {
	r := rejected{frame, packet.ParseLayers(frame)}
	switch {
	case r.TCI != 0, !r.answerable(): // an answer that walks as a reply has no tag
		return nil
	case r.v6():
		return r.icmp(packet.ICMPv6PacketTooBig, 0, uint32(max(mtu, minMTU6)))
	case packet.IPv4(frame[r.L3:]).FlagsOffset()&packet.IPv4DontFragment == 0:
		return nil
	}
	const fragmentationNeeded = 4
	return r.icmp(packet.ICMPUnreachable, fragmentationNeeded, uint32(max(mtu, minMTU)))
}

// icmp answers with ICMP or ICMPv6, quoting the packet; rest is the second word
// of the header.
func (r *rejected) icmp(typ, code uint8, rest uint32) []byte {
	ip, proto := r.frame[r.L3:r.End], uint8(packet.ProtoICMP)
	quote := ip[:min(len(ip), quoted4)]
	if r.v6() {
		proto = packet.ProtoICMPv6
		quote = ip[:min(len(ip), quoted6)]
	}
	a := r.reply(proto, packet.ICMPLen+len(quote))
	out := packet.ICMP(a.payload)
	out.SetType(typ)
	out.SetCode(code)
	out.SetRest(rest)
	copy(out.Quoted(), quote)
	sum := uint16(0)
	if r.v6() {
		sum = a.pseudo
	}
	out.SetChecksum(packet.Checksum(out, sum))
	return a.frame
}

// reply is a frame on its way back.
type reply struct {
	frame   []byte
	payload []byte // of the IP packet, still zero
	pseudo  uint16 // the sum over its pseudo header
}

// reply is a frame back to the sender, with an IP payload of n bytes.
func (r *rejected) reply(proto uint8, n int) reply {
	length := packet.IPv4Len
	if r.v6() {
		length = packet.IPv6Len
	}
	b := make([]byte, packet.EthernetLen+length+n)
	in, eth, ip := packet.Ethernet(r.frame), packet.Ethernet(b), b[packet.EthernetLen:]
	eth.SetDst(in.Src())
	eth.SetSrc(in.Dst())
	eth.SetType(r.EtherType)
	src, dst := r.ends()
	a := reply{frame: b, payload: ip[length:]}
	if r.v6() {
		a.pseudo = writeIPv6(ip, proto, dst, src)
	} else {
		a.pseudo = writeIPv4(ip, proto, dst, src)
	}
	return a
}

// writeIPv4 writes the header of a packet and returns the sum over its pseudo
// header.
func writeIPv4(b []byte, proto uint8, src, dst netip.Addr) uint16 {
	ip := packet.IPv4(b)
	ip.Init()
	ip.SetTotalLen(uint16(len(b)))
	ip.SetFlagsOffset(packet.IPv4DontFragment)
	ip.SetTTL(replyTTL)
	ip.SetProto(proto)
	ip.SetSrc(src)
	ip.SetDst(dst)
	ip.UpdateChecksum()
	return ip.PseudoSum(proto, len(b)-packet.IPv4Len)
}

// writeIPv6 likewise.
func writeIPv6(b []byte, proto uint8, src, dst netip.Addr) uint16 {
	ip := packet.IPv6(b)
	ip.SetFirst(0, 0)
	ip.SetPayloadLen(uint16(len(b) - packet.IPv6Len))
	ip.SetNextHeader(proto)
	ip.SetHopLimit(replyTTL)
	ip.SetSrc(src)
	ip.SetDst(dst)
	return ip.PseudoSum(proto, len(b)-packet.IPv6Len)
}
