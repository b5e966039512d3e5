package tuple

import "github.com/antrail/antrail/packet"

// answerType is the type of the ICMP reply to typ, or of the request that typ answers. It is typ
// itself if typ is neither request nor reply.
func answerType(proto, typ uint8) uint8 {
	if proto == packet.ProtoICMPv6 {
		switch typ {
		case packet.ICMPv6Echo:
			return packet.ICMPv6EchoReply
		case packet.ICMPv6EchoReply:
			return packet.ICMPv6Echo
		}
		return typ
	}
	switch typ {
	case packet.ICMPEcho:
		return packet.ICMPEchoReply
	case packet.ICMPEchoReply:
		return packet.ICMPEcho
	case packet.ICMPTimestamp:
		return packet.ICMPTimestampReply
	case packet.ICMPTimestampReply:
		return packet.ICMPTimestamp
	case packet.ICMPInfoRequest:
		return packet.ICMPInfoReply
	case packet.ICMPInfoReply:
		return packet.ICMPInfoRequest
	}
	return typ
}

// ICMPRequest says whether a type of ICMP, or of ICMPv6, may begin a connection.
func ICMPRequest(proto, typ uint8) bool {
	if proto == packet.ProtoICMPv6 {
		return typ == packet.ICMPv6Echo
	}
	switch typ {
	case packet.ICMPEcho, packet.ICMPTimestamp, packet.ICMPInfoRequest:
		return true
	}
	return false
}

// icmpError says whether an ICMP type quotes a packet (CT-6, CT-32).
func icmpError(proto, typ uint8) bool {
	if proto == packet.ProtoICMPv6 {
		return packet.ICMPv6Error(typ)
	}
	return packet.ICMPError(typ)
}

// The smallest MTU of a link that IP runs on (RFC 791, RFC 8200). A router that
// reports less would only shrink the sender's packets (CT-34).
const (
	minMTUv4 = 576
	minMTUv6 = 1280
)

// believable says whether the MTU that an ICMP error reports, if any, may be true.
func believable(k *Key, h packet.ICMP) bool {
	switch {
	case k.Family == IPv4 && h.Type() == packet.ICMPUnreachable && h.Code() == icmpFragNeeded:
		return h.Rest()&0xffff >= minMTUv4
	case k.Family == IPv6 && h.Type() == packet.ICMPv6PacketTooBig:
		return h.Rest() >= minMTUv6
	}
	return true
}

// icmpFragNeeded is the code of "fragmentation needed and DF set" (RFC 1191).
const icmpFragNeeded = 4

// quotedLen is how many bytes of the quoted packet's transport header must be present (RFC 792:
// the first 64 bits).
const quotedLen = 8

// readQuoted makes the key of an ICMP error. It is the key of a reply to the quoted packet, so
// its direction is the error's own. at is where the quoted packet begins. outer is the key of the
// error's own addresses.
//
// The receiver of the error must have sent the quoted packet, which must be neither a fragment
// nor an error. Nothing more is checked, because the packet's end and its checksums may be cut
// off (CT-32). Quoted IPv6 extension headers are not supported.
func (s *Packet) readQuoted(b []byte, at int, outer *Key) bool {
	s.Related, s.L3 = true, at
	k := Key{Zone: outer.Zone, Family: outer.Family}
	if !s.readQuotedIP(b, &k) || k.Src != outer.Dst {
		return false
	}
	p := b[s.L4:s.End]
	if k.ICMP() && icmpError(k.Proto, p[0]) || !k.readPorts(p) {
		return false
	}
	s.Key = k.Reversed()
	return true
}

// readQuotedIP reads the quoted network header.
func (s *Packet) readQuotedIP(b []byte, k *Key) bool {
	q := b[s.L3:s.End]
	if k.Family == IPv6 {
		h := packet.IPv6(q)
		if len(h) < packet.IPv6Len+quotedLen || q[0]>>4 != 6 {
			return false
		}
		s.L4 = s.L3 + packet.IPv6Len
		k.readIPv6(h, h.NextHeader())
		return true
	}
	h := packet.IPv4(q)
	if len(h) < packet.IPv4Len || q[0]>>4 != 4 || h.HeaderLen() < packet.IPv4Len || h.Frag() != 0 {
		return false
	}
	s.L4 = s.L3 + h.HeaderLen()
	k.readIPv4(h)
	return s.L4+quotedLen <= s.End
}
