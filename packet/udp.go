package packet

import "encoding/binary"

// UDPLen is the length of a UDP header.
const UDPLen = 8

const (
	udpSrc      = 0
	udpDst      = 2
	udpLength   = 4
	udpChecksum = 6
)

// UDP is a UDP header and its payload (RFC 768).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|          Source Port          |       Destination Port        |
//	+-------------------------------+-------------------------------+
//	|            Length             |           Checksum            |
//	+-------------------------------+-------------------------------+
type UDP []byte

// Valid reports whether the header and everything up to Length is inside the
// bytes. The accessors need only the first 8 bytes.
func (h UDP) Valid() bool {
	return len(h) >= UDPLen && h.Length() >= UDPLen && int(h.Length()) <= len(h)
}

// SrcPort is the Source Port.
func (h UDP) SrcPort() uint16 { return binary.BigEndian.Uint16(h[udpSrc:]) }

// DstPort is the Destination Port.
func (h UDP) DstPort() uint16 { return binary.BigEndian.Uint16(h[udpDst:]) }

// Length is the length of header and payload in bytes.
func (h UDP) Length() uint16 { return binary.BigEndian.Uint16(h[udpLength:]) }

// Checksum is the Checksum field; 0 means none.
func (h UDP) Checksum() uint16 { return binary.BigEndian.Uint16(h[udpChecksum:]) }

// Payload is the bytes behind the header, up to Length. The header must be Valid.
func (h UDP) Payload() []byte { return h[UDPLen:h.Length()] }

// SetSrcPort writes the Source Port. Like all setters here it does not update the
// checksum.
func (h UDP) SetSrcPort(v uint16) { binary.BigEndian.PutUint16(h[udpSrc:], v) }

// SetDstPort writes the Destination Port.
func (h UDP) SetDstPort(v uint16) { binary.BigEndian.PutUint16(h[udpDst:], v) }

// SetLength writes Length, in bytes.
func (h UDP) SetLength(v uint16) { binary.BigEndian.PutUint16(h[udpLength:], v) }

// SetChecksum writes the Checksum field.
func (h UDP) SetChecksum(v uint16) { binary.BigEndian.PutUint16(h[udpChecksum:], v) }
