package tunnel

import "encoding/binary"

const (
	vxlanFlags = 0
	vxlanVNI   = 4

	vxlanValid = 0x08 // the I flag
)

// VXLAN is a VXLAN header and the Ethernet frame behind it (RFC 7348, section 5).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-----------------------------------------------+
//	|R|R|R|R|I|R|R|R|                   Reserved                    |
//	+---------------+-------------------------------+---------------+
//	|       VXLAN Network Identifier (VNI)          |    Reserved   |
//	+-----------------------------------------------+---------------+
//
// Reserved bits are sent as zeros and ignored when received.
type VXLAN []byte

// Valid says whether the header is inside the bytes.
func (h VXLAN) Valid() bool { return len(h) >= HeaderLen }

// HasVNI is the I flag, without which a packet means nothing.
func (h VXLAN) HasVNI() bool { return h[vxlanFlags]&vxlanValid != 0 }

// VNI is the 24-bit network identifier.
func (h VXLAN) VNI() uint32 { return binary.BigEndian.Uint32(h[vxlanVNI:]) >> 8 }

// Payload is what follows the header.
func (h VXLAN) Payload() []byte { return h[HeaderLen:] }

// Init writes a header for virtual network vni. It sends the lowest 24 bits of vni.
func (h VXLAN) Init(vni uint32) {
	binary.BigEndian.PutUint32(h[vxlanFlags:], vxlanValid<<24)
	binary.BigEndian.PutUint32(h[vxlanVNI:], vni<<8)
}

func unwrapVXLAN(b []byte) (inner []byte, vni uint32, why Reason) {
	h := VXLAN(b)
	switch {
	case !h.Valid():
		return nil, 0, Short
	case !h.HasVNI():
		return nil, 0, NoVNI
	}
	return h.Payload(), h.VNI(), None
}
