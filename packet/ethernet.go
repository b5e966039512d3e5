package packet

import "encoding/binary"

// EtherTypes that the switch reads (IEEE 802 numbers).
const (
	EtherTypeIPv4 = 0x0800
	EtherTypeARP  = 0x0806
	EtherTypeTEB  = 0x6558 // transparent Ethernet bridging: the payload of Geneve
	EtherTypeRARP = 0x8035
	EtherTypeVLAN = 0x8100
	EtherTypeIPv6 = 0x86dd
	EtherTypeQinQ = 0x88a8
	// EtherTypeLLC is Open vSwitch's dl_type for an 802.3 frame without a type.
	EtherTypeLLC = 0x05ff
	minEtherType = 0x0600 // below it, the field is an 802.3 length
)

// Lengths in bytes: an Ethernet header without tags, and one VLAN tag.
const (
	EthernetLen = 14
	VLANLen     = 4
	llcSNAPLen  = 8
)

const (
	etherDst  = 0
	etherSrc  = 6
	etherType = 12
)

// Ethernet is an Ethernet II header (IEEE 802.3, clause 3).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                      Destination address                      |
//	+                               +-------------------------------+
//	|                               |                               |
//	+-------------------------------+                               +
//	|                         Source address                        |
//	+-------------------------------+-------------------------------+
//	|          Length/Type          |  Payload …
//	+-------------------------------+
type Ethernet []byte

// Valid reports whether the header is inside the bytes. Call it first.
func (h Ethernet) Valid() bool { return len(h) >= EthernetLen }

// Dst is the destination address.
func (h Ethernet) Dst() [6]byte { return [6]byte(h[etherDst:]) }

// Src is the source address.
func (h Ethernet) Src() [6]byte { return [6]byte(h[etherSrc:]) }

// Type is the Length/Type field. In a tagged frame it is the tag's type.
func (h Ethernet) Type() uint16 { return binary.BigEndian.Uint16(h[etherType:]) }

// SetDst writes the destination address.
func (h Ethernet) SetDst(mac [6]byte) { copy(h[etherDst:], mac[:]) }

// SetSrc writes the source address.
func (h Ethernet) SetSrc(mac [6]byte) { copy(h[etherSrc:], mac[:]) }

// SetType writes the Length/Type field.
func (h Ethernet) SetType(t uint16) { binary.BigEndian.PutUint16(h[etherType:], t) }

// VLANPresent is the bit that Open vSwitch sets in vlan_tci if there is a tag. On
// the wire it is the drop eligible indicator.
const VLANPresent = 0x1000

// VLAN is a tag (IEEE 802.1Q, clause 9.6) from its type on. It has the place of
// an untagged frame's Length/Type field, which follows the tag.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-----+-+-----------------------+
//	|  TPID (0x8100 or 0x88a8)      | PCP |D|          VID          |
//	+-------------------------------+-----+-+-----------------------+
type VLAN []byte

// Valid reports whether the tag and the type behind it are inside the bytes.
func (h VLAN) Valid() bool { return len(h) >= VLANLen+2 }

// TCI is the tag control information: priority, drop eligible, VLAN identifier.
func (h VLAN) TCI() uint16 { return binary.BigEndian.Uint16(h[2:]) }

// Type is the Length/Type field behind the tag.
func (h VLAN) Type() uint16 { return binary.BigEndian.Uint16(h[4:]) }

// SetTPID writes the tag protocol identifier.
func (h VLAN) SetTPID(t uint16) { binary.BigEndian.PutUint16(h, t) }

// SetTCI writes the tag control information.
func (h VLAN) SetTCI(tci uint16) { binary.BigEndian.PutUint16(h[2:], tci) }

// IsVLAN reports whether an EtherType is that of a VLAN tag.
func IsVLAN(etherType uint16) bool {
	return etherType == EtherTypeVLAN || etherType == EtherTypeQinQ
}

// PushVLAN inserts a tag before the frame's type, outside any tag it has, and
// moves the addresses into the headroom. It sends the drop eligible bit of tci,
// which stands for VLANPresent, as 0. If the headroom is too short or the frame
// is not an Ethernet frame, it changes nothing and returns false.
func PushVLAN(f *Frame, tpid, tci uint16) bool {
	if f.Len() < EthernetLen || f.Prepend(VLANLen) == nil {
		return false
	}
	b := f.Bytes()
	copy(b[:2*6], b[VLANLen:])
	tag := VLAN(b[etherType:])
	tag.SetTPID(tpid)
	tag.SetTCI(tci &^ VLANPresent)
	if f.Offload.ChecksumPartial {
		f.Offload.ChecksumStart += VLANLen
	}
	return true
}

// PopVLAN removes the outermost tag. Without one, it changes nothing and returns
// false.
func PopVLAN(f *Frame) bool {
	b := f.Bytes()
	if len(b) < EthernetLen+VLANLen || !IsVLAN(Ethernet(b).Type()) {
		return false
	}
	copy(b[VLANLen:VLANLen+2*6], b[:2*6])
	f.TrimFront(VLANLen)
	if f.Offload.ChecksumPartial {
		f.Offload.ChecksumStart -= VLANLen
	}
	return true
}
