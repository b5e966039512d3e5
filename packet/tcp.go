package packet

import "encoding/binary"

// TCPLen is the length of a TCP header without options.
const TCPLen = 20

// TCP control bits (RFC 9293, section 3.1; AE is RFC 9768's name for NS).
const (
	TCPFin = 1 << iota
	TCPSyn
	TCPRst
	TCPPsh
	TCPAck
	TCPUrg
	TCPEce
	TCPCwr
	TCPAE
)

// Kinds of TCP options (IANA).
const (
	TCPOptionEnd         = 0
	TCPOptionNop         = 1
	TCPOptionMSS         = 2
	TCPOptionWindowScale = 3
	TCPOptionSACKPermit  = 4
)

const (
	tcpSrc      = 0
	tcpDst      = 2
	tcpSeq      = 4
	tcpAck      = 8
	tcpOffset   = 12
	tcpWindow   = 14
	tcpChecksum = 16
	tcpUrgent   = 18
)

// TCP is a TCP header and its payload (RFC 9293, section 3.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|          Source Port          |       Destination Port        |
//	+-------------------------------+-------------------------------+
//	|                        Sequence Number                        |
//	+---------------------------------------------------------------+
//	|                    Acknowledgment Number                      |
//	+-------+-------+---------------+-------------------------------+
//	| Data  |       |C|E|U|A|P|R|S|F|                               |
//	|Offset | Rsrvd |W|C|R|C|S|S|Y|I|            Window             |
//	|       |       |R|E|G|K|H|T|N|N|                               |
//	+-------+-------+---------------+-------------------------------+
//	|           Checksum            |         Urgent Pointer        |
//	+-------------------------------+-------------------------------+
//	|                           [Options]                           |
//	+---------------------------------------------------------------+
type TCP []byte

// Valid reports whether the header with its options is inside the bytes. The
// accessors need only the first 20 bytes.
func (h TCP) Valid() bool {
	return len(h) >= TCPLen && h.HeaderLen() >= TCPLen && h.HeaderLen() <= len(h)
}

// SrcPort is the Source Port.
func (h TCP) SrcPort() uint16 { return binary.BigEndian.Uint16(h[tcpSrc:]) }

// DstPort is the Destination Port.
func (h TCP) DstPort() uint16 { return binary.BigEndian.Uint16(h[tcpDst:]) }

// Seq is the Sequence Number.
func (h TCP) Seq() uint32 { return binary.BigEndian.Uint32(h[tcpSeq:]) }

// Ack is the Acknowledgment Number.
func (h TCP) Ack() uint32 { return binary.BigEndian.Uint32(h[tcpAck:]) }

// HeaderLen is the header's length in bytes: four times Data Offset.
func (h TCP) HeaderLen() int { return int(h[tcpOffset]>>4) * 4 }

// Flags are the control bits and the reserved bits above them: 12 bits, as Open
// vSwitch's tcp_flags.
func (h TCP) Flags() uint16 { return binary.BigEndian.Uint16(h[tcpOffset:]) & 0xfff }

// Window is the Window field, not scaled.
func (h TCP) Window() uint16 { return binary.BigEndian.Uint16(h[tcpWindow:]) }

// Checksum is the Checksum field.
func (h TCP) Checksum() uint16 { return binary.BigEndian.Uint16(h[tcpChecksum:]) }

// Options are the bytes of the options. The header must be Valid.
func (h TCP) Options() TCPOptions { return TCPOptions(h[TCPLen:h.HeaderLen()]) }

// Payload is the bytes behind the header. The header must be Valid.
func (h TCP) Payload() []byte { return h[h.HeaderLen():] }

// SetSrcPort writes the Source Port. Like all setters here it does not update the
// checksum.
func (h TCP) SetSrcPort(v uint16) { binary.BigEndian.PutUint16(h[tcpSrc:], v) }

// SetDstPort writes the Destination Port.
func (h TCP) SetDstPort(v uint16) { binary.BigEndian.PutUint16(h[tcpDst:], v) }

// SetSeq writes the Sequence Number.
func (h TCP) SetSeq(v uint32) { binary.BigEndian.PutUint32(h[tcpSeq:], v) }

// SetAck writes the Acknowledgment Number.
func (h TCP) SetAck(v uint32) { binary.BigEndian.PutUint32(h[tcpAck:], v) }

// SetHeaderLen writes Data Offset for a header of n bytes, a multiple of 4 up
// to 60.
func (h TCP) SetHeaderLen(n int) { h[tcpOffset] = h[tcpOffset]&0xf | byte(n/4)<<4 }

// SetFlags writes the 12 bits of Flags.
func (h TCP) SetFlags(v uint16) {
	h[tcpOffset] = h[tcpOffset]&0xf0 | byte(v>>8)&0xf
	h[tcpOffset+1] = byte(v)
}

// SetWindow writes the Window field.
func (h TCP) SetWindow(v uint16) { binary.BigEndian.PutUint16(h[tcpWindow:], v) }

// SetChecksum writes the Checksum field.
func (h TCP) SetChecksum(v uint16) { binary.BigEndian.PutUint16(h[tcpChecksum:], v) }

// TCPOptions are the options of a TCP header.
type TCPOptions []byte

// Next is the first option, NOPs skipped: its kind, the bytes after kind and
// length, and the options behind it. ok is false at the end of the list and at
// an option whose length does not fit.
func (o TCPOptions) Next() (kind uint8, value []byte, rest TCPOptions, ok bool) {
	for len(o) > 0 && o[0] == TCPOptionNop {
		o = o[1:]
	}
	if len(o) < 2 || o[0] == TCPOptionEnd {
		return 0, nil, nil, false
	}
	n := int(o[1])
	if n < 2 || n > len(o) {
		return 0, nil, nil, false
	}
	return o[0], o[2:n], o[n:], true
}

// WindowScale is the shift count of the Window Scale option, at most 14 (RFC
// 7323, section 2). ok is false without the option.
func (o TCPOptions) WindowScale() (shift uint8, ok bool) {
	for {
		kind, v, rest, more := o.Next()
		if !more {
			return 0, false
		}
		if kind == TCPOptionWindowScale && len(v) == 1 {
			return min(v[0], 14), true
		}
		o = rest
	}
}
