package conntrack

import "github.com/antrail/antrail/packet"

// answerType is the ICMP type that answers one, or that it answers; the type
// itself when it is neither request nor reply.
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

// icmpRequest says whether an ICMP type may begin a connection.
func icmpRequest(proto, typ uint8) bool {
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

// believable says whether an ICMP error reports an MTU that may be true, if it
// reports one.
func believable(k *key, h packet.ICMP) bool {
	switch {
	case k.family == ipv4 && h.Type() == packet.ICMPUnreachable && h.Code() == icmpFragNeeded:
		return h.Rest()&0xffff >= minMTUv4
	case k.family == ipv6 && h.Type() == packet.ICMPv6PacketTooBig:
		return h.Rest() >= minMTUv6
	}
	return true
}

// icmpFragNeeded is the code of "fragmentation needed and DF set" (RFC 1191).
const icmpFragNeeded = 4

// quotedLen is how much of the quoted packet's transport header must be there
// (RFC 792: the first 64 bits).
const quotedLen = 8

// readQuoted makes the key of an ICMP error: that of an answer to the packet
// that it quotes, so that the key's direction is the error's own. at is where
// the quoted packet begins; outer is the key of the error's own addresses.
//
// The quoted packet must have been sent by the one whom the error is for, must
// not be a fragment or an error itself, and is not checked any further: its
// rest and its checksums may be cut off (CT-32). An IPv6 packet quoted with
// extension headers is not understood.
func (s *shown) readQuoted(b []byte, at int, outer *key) bool {
	s.related, s.l3 = true, at
	k := key{zone: outer.zone, family: outer.family}
	if !s.readQuotedIP(b, &k) || k.src != outer.dst {
		return false
	}
	p := b[s.l4:s.end]
	if k.icmp() && icmpError(k.proto, p[0]) || !k.readPorts(p) {
		return false
	}
	s.key = k.reversed()
	return true
}

// readQuotedIP reads the quoted network header.
func (s *shown) readQuotedIP(b []byte, k *key) bool {
	q := b[s.l3:s.end]
	if k.family == ipv6 {
		h := packet.IPv6(q)
		if len(h) < packet.IPv6Len+quotedLen || q[0]>>4 != 6 {
			return false
		}
		s.l4 = s.l3 + packet.IPv6Len
		k.readIPv6(h, h.NextHeader())
		return true
	}
	h := packet.IPv4(q)
	if len(h) < packet.IPv4Len || q[0]>>4 != 4 || h.HeaderLen() < packet.IPv4Len || h.Frag() != 0 {
		return false
	}
	s.l4 = s.l3 + h.HeaderLen()
	k.readIPv4(h)
	return s.l4+quotedLen <= s.end
}
