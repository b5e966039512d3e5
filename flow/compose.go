package flow

import (
	"encoding/binary"
	"slices"

	"github.com/antrail/antrail/packet"
)

// payloadLen is the length of the payload behind a UDP header, an ICMP echo, and a TCP segment
// that neither opens nor ends a connection. The bytes are 0, 1, 2 …, as in a packet that Open
// vSwitch composes from a flow.
const payloadLen = 64

// fragmentOffset is the offset of a composed later fragment, in units of 8 bytes.
const fragmentOffset = 100

// noNextHeader ends an IPv6 header chain (RFC 8200, section 4.7).
const noNextHeader = 59

// Compose makes the packet that a key describes: an Ethernet frame, not padded, with valid
// lengths and checksums. The bytes are those of ovs-ofctl compose-packet, except that SCTP gets
// its checksum and a chunk, and IPv6 its fragment header. A field that is zero in the key is zero
// in the packet, a TTL too.
//
// Extract returns the key's header fields, except for a key that no packet has. One without
// eth_type becomes an 802.3 frame; an IPv6 protocol may be an extension header.
func Compose(k *Key) []byte {
	b := k.appendEthernet(make([]byte, 0, 256))
	switch k.u16(offEthType) {
	case packet.EtherTypeIPv4:
		b = k.appendIPv4(b)
	case packet.EtherTypeIPv6:
		b = k.appendIPv6(b)
	case packet.EtherTypeARP, packet.EtherTypeRARP:
		b = k.appendARP(b)
	}
	l := packet.ParseLayers(b)
	l.SetL4Checksum(b)
	return b
}

func (k *Key) u16(off int) uint16 { return binary.BigEndian.Uint16(k[off:]) }

// extend appends n zeros to b and returns the whole slice and the new part.
func extend(b []byte, n int) (whole, part []byte) {
	whole = append(b, make([]byte, n)...)
	return whole, whole[len(b):]
}

// appendPayload appends payloadLen bytes that count from 0.
func appendPayload(b []byte) []byte {
	for i := range byte(payloadLen) {
		b = append(b, i)
	}
	return b
}

func (k *Key) appendEthernet(b []byte) []byte {
	b = append(b, k[offEthDst:offEthType]...)
	if tci := k.u16(offVlanTCI); tci != 0 {
		b = binary.BigEndian.AppendUint16(b, packet.EtherTypeVLAN)
		b = binary.BigEndian.AppendUint16(b, tci&^packet.VLANPresent)
	}
	etherType := k.u16(offEthType)
	if etherType == packet.EtherTypeLLC {
		etherType = 0 // the length of an 802.3 frame without payload
	}
	return binary.BigEndian.AppendUint16(b, etherType)
}

func (k *Key) appendARP(b []byte) []byte {
	b, h := extend(b, packet.ARPLen)
	a := packet.ARP(h)
	a.Init()
	a.SetOp(k.u16(offArpOp))
	a.SetSHA([6]byte(k[offArpSHA:]))
	a.SetTHA([6]byte(k[offArpTHA:]))
	a.SetSPA([4]byte(k[offNwSrc:]))
	a.SetTPA([4]byte(k[offNwDst:]))
	return b
}

func (k *Key) appendIPv4(b []byte) []byte {
	at := len(b)
	b, _ = extend(b, packet.IPv4Len)
	b = k.appendL4(b)
	h := packet.IPv4(b[at:])
	h.Init()
	h.SetTOS(k[offNwTOS])
	h.SetTotalLen(uint16(len(h)))
	h.SetFlagsOffset(k.ipv4Fragment())
	h.SetTTL(k[offNwTTL])
	h.SetProto(k[offNwProto])
	copy(h.SrcBytes(), k[offNwSrc:])
	copy(h.DstBytes(), k[offNwDst:])
	h.UpdateChecksum()
	return b
}

func (k *Key) ipv4Fragment() uint16 {
	switch frag := k[offNwFrag]; {
	case frag&packet.FragLater != 0:
		return packet.IPv4MoreFragments | fragmentOffset
	case frag != 0:
		return packet.IPv4MoreFragments
	}
	return 0
}

func (k *Key) appendIPv6(b []byte) []byte {
	at, next := len(b), k[offNwProto]
	b, _ = extend(b, packet.IPv6Len)
	if k[offNwFrag] != 0 {
		b, next = k.appendFragmentHeader(b), packet.ProtoFragment
	}
	b = k.appendL4(b)
	h := packet.IPv6(b[at:])
	h.SetFirst(k[offNwTOS], k.u32(offIPv6Label))
	h.SetPayloadLen(uint16(len(h) - packet.IPv6Len))
	h.SetNextHeader(next)
	h.SetHopLimit(k[offNwTTL])
	copy(h.SrcBytes(), k[offIPv6Src:])
	copy(h.DstBytes(), k[offIPv6Dst:])
	return b
}

// appendFragmentHeader makes a first fragment of the key's protocol, or a later one without a
// protocol, because its key holds 44.
func (k *Key) appendFragmentHeader(b []byte) []byte {
	if k[offNwFrag]&packet.FragLater != 0 {
		return append(b, noNextHeader, 0, fragmentOffset>>5, fragmentOffset<<3&0xff|1, 0, 0, 0, 0)
	}
	return append(b, k[offNwProto], 0, 0, 1, 0, 0, 0, 0)
}

// appendL4 makes the transport header and payload, with a checksum of 0.
func (k *Key) appendL4(b []byte) []byte {
	if k[offNwFrag]&packet.FragLater != 0 {
		return b
	}
	switch k[offNwProto] {
	case packet.ProtoTCP:
		return k.appendTCP(b)
	case packet.ProtoUDP:
		b, h := extend(b, packet.UDPLen)
		copy(h, k[offTpSrc:offTpDst+2])
		packet.UDP(h).SetLength(packet.UDPLen + payloadLen)
		return appendPayload(b)
	case packet.ProtoSCTP:
		return k.appendSCTP(b)
	case packet.ProtoICMP, packet.ProtoIGMP:
		return k.appendICMP(b)
	case packet.ProtoICMPv6:
		return k.appendICMPv6(b)
	}
	return b
}

func (k *Key) appendTCP(b []byte) []byte {
	flags := k.u16(offTCPFlags)
	b, h := extend(b, packet.TCPLen)
	copy(h, k[offTpSrc:offTpDst+2])
	packet.TCP(h).SetHeaderLen(packet.TCPLen)
	packet.TCP(h).SetFlags(flags)
	if flags&(packet.TCPSyn|packet.TCPFin|packet.TCPRst) != 0 {
		return b
	}
	return appendPayload(b)
}

// appendSCTP makes a packet with one INIT chunk, the smallest that can begin an association.
func (k *Key) appendSCTP(b []byte) []byte {
	const chunk = 20
	b, h := extend(b, packet.SCTPLen+chunk)
	copy(h, k[offTpSrc:offTpDst+2])
	copy(h[packet.SCTPLen:], []byte{packet.SCTPInit, 0, 0, chunk})
	return b
}

func (k *Key) appendICMP(b []byte) []byte {
	b, h := extend(b, packet.ICMPLen)
	h[0], h[1] = k[offTpSrc+1], k[offTpDst+1]
	if k[offNwProto] == packet.ProtoICMP && (h[0] == packet.ICMPEcho || h[0] == packet.ICMPEchoReply) {
		b = appendPayload(b)
	}
	return b
}

func (k *Key) appendICMPv6(b []byte) []byte {
	at := len(b)
	b, h := extend(b, packet.NDLen)
	h[0], h[1] = k[offTpSrc+1], k[offTpDst+1]
	switch {
	case packet.ND(h).Valid():
		copy(packet.ND(h).Target(), k[offNDTarget:])
		b = appendNDOption(b, packet.NDOptionSourceLinkAddr, k[offArpSHA:offArpSHA+6])
		return appendNDOption(b, packet.NDOptionTargetLinkAddr, k[offArpTHA:offArpTHA+6])
	case h[0] == packet.ICMPv6Echo || h[0] == packet.ICMPv6EchoReply:
		return appendPayload(b[:at+packet.ICMPLen])
	}
	return b[:at+packet.ICMPLen]
}

// appendNDOption adds a link-layer address option, unless the address is zero.
func appendNDOption(b []byte, typ byte, addr []byte) []byte {
	if !slices.ContainsFunc(addr, func(v byte) bool { return v != 0 }) {
		return b
	}
	return append(append(b, typ, 1), addr...)
}
