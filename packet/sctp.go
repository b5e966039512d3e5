package packet

import "encoding/binary"

// SCTPLen is the length of the SCTP common header.
const SCTPLen = 12

// Chunk types that a tracker reads (RFC 9260, section 3.2).
const (
	SCTPData             = 0
	SCTPInit             = 1
	SCTPInitAck          = 2
	SCTPHeartbeat        = 4
	SCTPHeartbeatAck     = 5
	SCTPAbort            = 6
	SCTPShutdown         = 7
	SCTPShutdownAck      = 8
	SCTPCookieEcho       = 10
	SCTPCookieAck        = 11
	SCTPShutdownComplete = 14
)

const (
	sctpSrc      = 0
	sctpDst      = 2
	sctpTag      = 4
	sctpChecksum = 8

	sctpChunkLen = 4
)

// SCTP is an SCTP common header and the chunks behind it (RFC 9260, section 3).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|      Source Port Number       |    Destination Port Number    |
//	+-------------------------------+-------------------------------+
//	|                       Verification Tag                        |
//	+---------------------------------------------------------------+
//	|                       Checksum (CRC32c)                       |
//	+---------------------------------------------------------------+
type SCTP []byte

// SrcPort is the Source Port Number.
func (h SCTP) SrcPort() uint16 { return binary.BigEndian.Uint16(h[sctpSrc:]) }

// DstPort is the Destination Port Number.
func (h SCTP) DstPort() uint16 { return binary.BigEndian.Uint16(h[sctpDst:]) }

// VerificationTag is the Verification Tag.
func (h SCTP) VerificationTag() uint32 { return binary.BigEndian.Uint32(h[sctpTag:]) }

// Checksum is the CRC32c in the header.
func (h SCTP) Checksum() uint32 { return binary.BigEndian.Uint32(h[sctpChecksum:]) }

// Chunks are the bytes behind the common header.
func (h SCTP) Chunks() SCTPChunks { return SCTPChunks(h[SCTPLen:]) }

// SetSrcPort writes the Source Port Number. Like all setters here it does not
// update the checksum.
func (h SCTP) SetSrcPort(v uint16) { binary.BigEndian.PutUint16(h[sctpSrc:], v) }

// SetDstPort writes the Destination Port Number.
func (h SCTP) SetDstPort(v uint16) { binary.BigEndian.PutUint16(h[sctpDst:], v) }

// SetVerificationTag writes the Verification Tag.
func (h SCTP) SetVerificationTag(v uint32) { binary.BigEndian.PutUint32(h[sctpTag:], v) }

// SetChecksum writes the Checksum field.
func (h SCTP) SetChecksum(v uint32) { binary.BigEndian.PutUint32(h[sctpChecksum:], v) }

// ComputeChecksum is the CRC32c over h, which must end with the packet.
func (h SCTP) ComputeChecksum() uint32 { return crc32c(h) }

// SCTPChunks are the chunks of an SCTP packet.
type SCTPChunks []byte

// Next is the first chunk: its type, flags and value, and the chunks behind it
// and its padding. ok is false at the end, and at a chunk whose length does not
// fit.
func (c SCTPChunks) Next() (typ, flags uint8, value []byte, rest SCTPChunks, ok bool) {
	if len(c) < sctpChunkLen {
		return 0, 0, nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(c[2:]))
	if n < sctpChunkLen || n > len(c) {
		return 0, 0, nil, nil, false
	}
	return c[0], c[1], c[sctpChunkLen:n], c[min((n+3)&^3, len(c)):], true
}
