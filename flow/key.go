package flow

import "encoding/binary"

// Key is everything a flow entry can match on, for one packet, as flat bytes in network byte
// order. Registers and other metadata come before headers. The registry (field.go) has the place
// of each field. A test checks that each byte belongs to one field or to a declared union.
//
// A header that the packet does not have is zero. An entry that matches on it also matches on its
// protocol (a field's prerequisites), so zero is never mistaken for a value.
type Key [KeySize]byte

// KeySize is a multiple of 8, so that lookups can read a Key by words.
const KeySize = 376

// KeyWords is the Key's size in 64-bit words.
const KeyWords = KeySize / 8

// Offsets in the key, in bytes.
const (
	offReg        = 0  // reg0..reg15, 4 bytes each; xxreg0 = reg0..reg3, reg0 first
	offCTLabel    = 64 // 16
	offMetadata   = 80 // 8
	offTunID      = 88 // 8
	offCTState    = 96 // 4
	offCTMark     = 100
	offPktMark    = 104
	offInPort     = 108
	offConjID     = 112
	offTunSrc     = 116
	offTunDst     = 120
	offCTZone     = 124 // 2
	offTunPresent = 126 // 1: bit i is set if the packet has the option of tun_metadata i
	offTunFlags   = 127 // 1
	offTunSrc6    = 128 // 16
	offTunDst6    = 144 // 16
	offCTNwSrc    = 160
	offCTNwDst    = 164
	offCTTpSrc    = 168 // 2
	offCTTpDst    = 170 // 2
	offCTNwProto  = 172 // 1
	offTunTTL     = 173
	offTunTOS     = 174
	offNwFrag     = 175 // 1: 1 any fragment, 3 later fragment
	offCTSrc6     = 176 // 16
	offCTDst6     = 192 // 16
	offTunData    = 208 // tun_metadata0..tun_metadata7, 8 bytes each, a shorter option in the last of them
	offEthDst     = 272 // 6
	offEthSrc     = 278 // 6
	offEthType    = 284 // 2
	offVlanTCI    = 286 // 2, with 0x1000 set if there is a tag
	offNwSrc      = 288 // 4, arp_spa for ARP
	offNwDst      = 292 // 4, arp_tpa for ARP
	offArpOp      = 296 // 2
	offNwProto    = 298 // 1
	offNwTOS      = 299 // 1, DSCP and ECN
	offNwTTL      = 300 // 1
	offPad1       = 301 // 1, always 0
	offTCPFlags   = 302 // 2
	offTpSrc      = 304 // 2, icmp_type in its low byte
	offTpDst      = 306 // 2, icmp_code in its low byte
	offIPv6Label  = 308 // 4
	offArpSHA     = 312 // 6, nd_sll for ICMPv6
	offArpTHA     = 318 // 6, nd_tll for ICMPv6
	offPad2       = 324 // 4, always 0
	offIPv6Src    = 328 // 16
	offIPv6Dst    = 344 // 16
	offNDTarget   = 360 // 16
)

// u32 reads 4 bytes at a key offset.
func (k *Key) u32(off int) uint32 { return binary.BigEndian.Uint32(k[off:]) }

func (k *Key) putU32(off int, v uint32) { binary.BigEndian.PutUint32(k[off:], v) }

// Reg is register i, 0 to 15.
func (k *Key) Reg(i int) uint32 { return k.u32(offReg + 4*i) }

// SetReg writes register i, 0 to 15.
func (k *Key) SetReg(i int, v uint32) { k.putU32(offReg+4*i, v) }

// SetTunnelOptionPresent marks the option of a tun_metadata field as present. Code that writes
// the field must call it.
func (k *Key) SetTunnelOptionPresent(id FieldID) { k[offTunPresent] |= 1 << (id - TunMetadata0) }

// IsTunMetadata reports whether a field is one of tun_metadata0 to tun_metadata7.
func IsTunMetadata(id FieldID) bool { return id >= TunMetadata0 && id < TunMetadata0+TunMetadataFields }

// HeaderStart is the offset of the header fields. Below it is metadata.
const HeaderStart = offEthDst

// InPort is the OpenFlow number of the input port, all 32 bits (the field in_port shows 16).
func (k *Key) InPort() uint32 { return k.u32(offInPort) }

// PktMark is the packet mark.
func (k *Key) PktMark() uint32 { return k.u32(offPktMark) }

// SetInPort writes the input port.
func (k *Key) SetInPort(no uint32) { k.putU32(offInPort, no) }

// Tuple has the fields that identify a connection, as words to hash: addresses of both families,
// protocol and ports.
func (k *Key) Tuple() [6]uint64 {
	at := func(off int) uint64 { return binary.LittleEndian.Uint64(k[off:]) }
	return [6]uint64{
		at(offNwSrc), at(offIPv6Src), at(offIPv6Src + 8), at(offIPv6Dst), at(offIPv6Dst + 8),
		uint64(k[offNwProto])<<32 | uint64(k.u32(offTpSrc)),
	}
}

// CopyTransport copies protocol, ports (ICMP type and code) and TCP flags from another key. A
// later fragment's own key has no ports, and in IPv6 the fragment header (44) as its protocol.
func (k *Key) CopyTransport(from *Key) {
	k[offNwProto] = from[offNwProto]
	copy(k[offTCPFlags:offTpDst+2], from[offTCPFlags:offTpDst+2])
}

// ConjID is conj_id. It is 0 except in the lookup that completes a conjunction.
func (k *Key) ConjID() uint32 { return k.u32(offConjID) }

// SetConjID writes conj_id.
func (k *Key) SetConjID(id uint32) { k.putU32(offConjID, id) }

// Conntrack has the conntrack fields of a key: ct_state, ct_zone, ct_mark, ct_label and the
// original tuple. The zero value is that of an untracked packet.
type Conntrack struct {
	State            uint32
	Zone             uint16
	Mark             uint32
	Label            Value
	IPv6             bool  // Src and Dst are IPv6
	Src, Dst         Value // as nw_src has it, or ipv6_src
	Proto            uint8
	SrcPort, DstPort uint16
}

// SetConntrack writes all conntrack fields.
func (k *Key) SetConntrack(c *Conntrack) {
	binary.BigEndian.PutUint64(k[offCTState:], uint64(c.State)<<32|uint64(c.Mark))
	k.putU16(offCTZone, c.Zone)
	binary.BigEndian.PutUint64(k[offCTLabel:], c.Label.Hi)
	binary.BigEndian.PutUint64(k[offCTLabel+8:], c.Label.Lo)
	k.putU32(offCTTpSrc, uint32(c.SrcPort)<<16|uint32(c.DstPort))
	k[offCTNwProto] = c.Proto
	if c.IPv6 {
		binary.BigEndian.PutUint64(k[offCTNwSrc:], 0)
		k.setOriginal6(c.Src, c.Dst)
		return
	}
	binary.BigEndian.PutUint64(k[offCTNwSrc:], c.Src.Lo<<32|c.Dst.Lo&0xffffffff)
	k.setOriginal6(Value{}, Value{})
}

// setOriginal6 writes ct_ipv6_src and ct_ipv6_dst.
func (k *Key) setOriginal6(src, dst Value) {
	binary.BigEndian.PutUint64(k[offCTSrc6:], src.Hi)
	binary.BigEndian.PutUint64(k[offCTSrc6+8:], src.Lo)
	binary.BigEndian.PutUint64(k[offCTDst6:], dst.Hi)
	binary.BigEndian.PutUint64(k[offCTDst6+8:], dst.Lo)
}
