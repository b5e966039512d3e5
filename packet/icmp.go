package packet

import "encoding/binary"

// ICMPLen is the length of the fixed part of an ICMP message.
const ICMPLen = 8

// ICMP types (RFC 792, RFC 950).
const (
	ICMPEchoReply        = 0
	ICMPUnreachable      = 3
	ICMPSourceQuench     = 4
	ICMPRedirect         = 5
	ICMPEcho             = 8
	ICMPTimeExceeded     = 11
	ICMPParameterProblem = 12
	ICMPTimestamp        = 13
	ICMPTimestampReply   = 14
	ICMPInfoRequest      = 15
	ICMPInfoReply        = 16
)

// ICMPv6 types (RFC 4443, RFC 4861).
const (
	ICMPv6Unreachable      = 1
	ICMPv6PacketTooBig     = 2
	ICMPv6TimeExceeded     = 3
	ICMPv6ParameterProblem = 4
	ICMPv6Echo             = 128
	ICMPv6EchoReply        = 129
	ICMPv6MLDQuery         = 130
	ICMPv6MLDReport        = 131
	ICMPv6MLDDone          = 132
	ICMPv6RouterSolicit    = 133
	ICMPv6RouterAdvert     = 134
	ICMPv6NeighborSolicit  = 135
	ICMPv6NeighborAdvert   = 136
	ICMPv6Redirect         = 137
	ICMPv6MLDv2Report      = 143
)

const (
	icmpType     = 0
	icmpCode     = 1
	icmpChecksum = 2
	icmpRest     = 4
)

// ICMP is an ICMP message (RFC 792) or an ICMPv6 message (RFC 4443): both have
// this shape.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------------------------------+
//	|     Type      |     Code      |           Checksum            |
//	+---------------+---------------+-------------------------------+
//	|          Identifier           |        Sequence Number        |
//	+-------------------------------+-------------------------------+
//
// The second word is identifier and sequence number in an echo only.
type ICMP []byte

// Type is the message type.
func (h ICMP) Type() uint8 { return h[icmpType] }

// Code is the message code.
func (h ICMP) Code() uint8 { return h[icmpCode] }

// Checksum is the Checksum field.
func (h ICMP) Checksum() uint16 { return binary.BigEndian.Uint16(h[icmpChecksum:]) }

// ID is the Identifier of an echo, timestamp or information message.
func (h ICMP) ID() uint16 { return binary.BigEndian.Uint16(h[icmpRest:]) }

// Seq is the Sequence Number of an echo.
func (h ICMP) Seq() uint16 { return binary.BigEndian.Uint16(h[icmpRest+2:]) }

// Rest is the second word. Its meaning depends on the type.
func (h ICMP) Rest() uint32 { return binary.BigEndian.Uint32(h[icmpRest:]) }

// SetType writes the message type. Like all setters here it does not update the
// checksum.
func (h ICMP) SetType(v uint8) { h[icmpType] = v }

// SetCode writes the message code.
func (h ICMP) SetCode(v uint8) { h[icmpCode] = v }

// SetChecksum writes the Checksum field.
func (h ICMP) SetChecksum(v uint16) { binary.BigEndian.PutUint16(h[icmpChecksum:], v) }

// SetID writes the Identifier.
func (h ICMP) SetID(v uint16) { binary.BigEndian.PutUint16(h[icmpRest:], v) }

// SetSeq writes the Sequence Number.
func (h ICMP) SetSeq(v uint16) { binary.BigEndian.PutUint16(h[icmpRest+2:], v) }

// SetRest writes the second word.
func (h ICMP) SetRest(v uint32) { binary.BigEndian.PutUint32(h[icmpRest:], v) }

// Quoted is the quoted part of the packet that an error is about. It begins with
// an IP header. Only ICMPError and ICMPv6Error types have one.
func (h ICMP) Quoted() []byte { return h[ICMPLen:] }

// ICMPError reports whether an ICMP type is an error, which quotes a packet.
// Redirects count as errors, as in Open vSwitch and Linux.
func ICMPError(typ uint8) bool {
	switch typ {
	case ICMPUnreachable, ICMPSourceQuench, ICMPRedirect, ICMPTimeExceeded, ICMPParameterProblem:
		return true
	}
	return false
}

// ICMPv6Error reports whether an ICMPv6 type is one of the errors of RFC 4443,
// which quote a packet.
func ICMPv6Error(typ uint8) bool {
	return typ >= ICMPv6Unreachable && typ <= ICMPv6ParameterProblem
}

// NDLen is the length of a neighbour solicitation or advertisement without
// options: the ICMPv6 header and the target address.
const NDLen = 24

// Neighbour discovery options that carry an Ethernet address (RFC 4861,
// section 4.6.1).
const (
	NDOptionSourceLinkAddr = 1
	NDOptionTargetLinkAddr = 2
)

// ND is a neighbour solicitation or advertisement (RFC 4861, sections 4.3 and
// 4.4): an ICMPv6 message whose second word is flags, then the target.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------------------------------+
//	|     Type      |     Code      |           Checksum            |
//	+-+-+-+---------+---------------+-------------------------------+
//	|R|S|O|                     Reserved                            |
//	+-+-+-+---------------------------------------------------------+
//	|                                                               |
//	+                                                               +
//	|                                                               |
//	+                        Target Address                         +
//	|                                                               |
//	+                                                               +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|   Options: type, length in 8 bytes, value …
//	+-----------------------------------
type ND []byte

// Valid reports whether the bytes hold a whole solicitation or advertisement, up
// to its options.
func (h ND) Valid() bool {
	return len(h) >= NDLen && h[icmpCode] == 0 &&
		(h[icmpType] == ICMPv6NeighborSolicit || h[icmpType] == ICMPv6NeighborAdvert)
}

// Target is the target address in place, 16 bytes.
func (h ND) Target() []byte { return h[ICMPLen:NDLen] }

// Options are the options.
func (h ND) Options() NDOptions { return NDOptions(h[NDLen:]) }

// NDOptions are the options of a neighbour discovery message.
type NDOptions []byte

// Next is the first option: its type, the bytes after type and length, and the
// options behind it. ok is false at the end, and at an option whose length is
// 0 or does not fit.
func (o NDOptions) Next() (typ uint8, value []byte, rest NDOptions, ok bool) {
	if len(o) < 8 {
		return 0, nil, nil, false
	}
	n := int(o[1]) * 8
	if n == 0 || n > len(o) {
		return 0, nil, nil, false
	}
	return o[0], o[2:n], o[n:], true
}
