package tunnel

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

const (
	greLeast = 4 // flags and protocol
	greField = 4 // each of the optional ones

	greChecksum = 0x8000
	greKey      = 0x2000
	greSequence = 0x1000
	// greRouting is the bits that RFC 1701 defined. They must be 0 for a receiver that does not
	// implement RFC 1701 (RFC 2784, section 2.3).
	greRouting = 0x4c00
	greVersion = 0x0007
)

// GRE is a GRE header and what follows it (RFC 2784, section 2; key and sequence
// number: RFC 2890, section 2). The virtual network is the key.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-----------------+-----+-------------------------------+
//	|C| |K|S|    Reserved0    | Ver |         Protocol Type         |
//	+-+-+-+-+-----------------+-----+-------------------------------+
//	|      Checksum (optional)      |      Reserved1 (optional)     |
//	+-------------------------------+-------------------------------+
//	|                         Key (optional)                        |
//	+---------------------------------------------------------------+
//	|                   Sequence Number (optional)                  |
//	+---------------------------------------------------------------+
type GRE []byte

// Valid says whether the header with the optional fields that it announces is
// inside the bytes. Flags, Version and Protocol need only 4 bytes.
func (h GRE) Valid() bool { return len(h) >= greLeast && h.HeaderLen() <= len(h) }

// Flags is the bits C, K, S and Reserved0, with the version as the lowest three.
func (h GRE) Flags() uint16 { return binary.BigEndian.Uint16(h) }

// Version is Ver; only 0 is defined here (1 is PPTP's, RFC 2637).
func (h GRE) Version() uint8 { return uint8(h.Flags() & greVersion) }

// Protocol is the Protocol Type: an EtherType, 0x6558 for an Ethernet frame.
func (h GRE) Protocol() uint16 { return binary.BigEndian.Uint16(h[2:]) }

// HeaderLen is the length of the header with its optional fields.
func (h GRE) HeaderLen() int {
	n := greLeast
	for _, f := range [...]uint16{greChecksum, greKey, greSequence} {
		if h.Flags()&f != 0 {
			n += greField
		}
	}
	return n
}

// Key is the key, 0 when there is none. The header must be Valid.
func (h GRE) Key() uint32 {
	at := greLeast
	switch {
	case h.Flags()&greKey == 0:
		return 0
	case h.Flags()&greChecksum != 0:
		at += greField
	}
	return binary.BigEndian.Uint32(h[at:])
}

// ChecksumValid verifies the checksum, which is over header and payload; true
// when there is none. The header must be Valid.
func (h GRE) ChecksumValid() bool {
	return h.Flags()&greChecksum == 0 || packet.Sum(h, 0) == 0xffff
}

// Payload is what follows the optional fields. The header must be Valid.
func (h GRE) Payload() []byte { return h[h.HeaderLen():] }

// Init writes a header with a key that announces an Ethernet frame.
func (h GRE) Init(key uint32) {
	binary.BigEndian.PutUint16(h, greKey)
	binary.BigEndian.PutUint16(h[2:], packet.EtherTypeTEB)
	binary.BigEndian.PutUint32(h[greLeast:], key)
}

// unwrapGRE accepts packets with any of the optional fields. It ignores a sequence number,
// because inner packets need no order.
func unwrapGRE(b []byte) (inner []byte, key uint32, why Reason) {
	h := GRE(b)
	switch {
	case len(h) < greLeast:
		return nil, 0, Short
	case h.Version() != 0:
		return nil, 0, Version
	case h.Flags()&greRouting != 0:
		return nil, 0, Routing
	case !h.Valid():
		return nil, 0, HeaderLength
	case h.Protocol() != packet.EtherTypeTEB:
		return nil, 0, Protocol
	case !h.ChecksumValid():
		return nil, 0, Checksum
	}
	return h.Payload(), h.Key(), None
}
