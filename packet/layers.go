package packet

import (
	"encoding/binary"
	"net/netip"
)

// Layers has the places of a frame's headers as byte offsets from the frame's
// first byte. ParseLayers computes it once for all readers of a packet, by the
// rules of Open vSwitch's flow extraction. An offset of 0 means that the header
// is missing (the Ethernet header is always at 0).
//
// A header counts only if its fixed part lies inside the frame. So the accessors
// of that part never read past the end. Variable parts (TCP options, a UDP
// payload, a quoted packet) have their own Valid.
type Layers struct {
	// EtherType is the type behind a VLAN tag (0x0800, 0x86dd, 0x0806 …). It is
	// EtherTypeLLC for an 802.3 frame without one, and 0 if the Ethernet header
	// is incomplete.
	EtherType uint16
	// TCI is the outermost VLAN tag's control information with bit 0x1000 set, or
	// 0 without a tag (as Open vSwitch's vlan_tci).
	TCI uint16
	// L3 is the offset of IPv4, IPv6 or ARP, whose fixed part is inside the
	// frame. If End is 0, the header is not sound.
	L3 int
	// L4 is the offset of the transport header. Only a whole packet or a first
	// fragment with a sound IP header has one. Its fixed part (TCP 20 bytes and
	// its options, UDP 8, ICMP 8, SCTP 12) must be before End. For other
	// protocols L4 is the offset of the IP payload.
	L4 int
	// End is the end of the IP packet by its own length field; Ethernet padding
	// follows. It is 0 if the IP or ARP header is wrong: its version, its lengths,
	// or ARP for other than IPv4 over Ethernet. Then Proto, Frag and L4 are 0 too.
	End int
	// Proto is the IP protocol behind IPv6 extension headers. As in Open vSwitch,
	// it is 44 for an IPv6 fragment that is not the first. It is 0 if the
	// extension headers do not fit.
	Proto uint8
	// Frag has FragAny for any fragment, and FragLater for one that is not the
	// first.
	Frag uint8
}

// Bits of Layers.Frag (as Open vSwitch's nw_frag).
const (
	FragAny   = 1
	FragLater = 2
)

// ParseLayers finds the headers of a frame. It never fails: fields that cannot be
// read stay 0. It skips one VLAN tag. It reads nothing behind a second one, as
// Open vSwitch with its vlan-limit of 1: EtherType is the second tag's.
func ParseLayers(b []byte) Layers {
	var l Layers
	if len(b) < EthernetLen {
		return l
	}
	off := l.parseType(b)
	switch l.EtherType {
	case EtherTypeIPv4:
		l.parseIPv4(b, off)
	case EtherTypeIPv6:
		l.parseIPv6(b, off)
	case EtherTypeARP, EtherTypeRARP:
		l.parseARP(b, off)
	}
	return l
}

// Addrs are the addresses of the IP header at L3. They are invalid without one.
func (l *Layers) Addrs(b []byte) (src, dst netip.Addr) {
	switch {
	case l.L3 == 0:
	case l.EtherType == EtherTypeIPv4:
		src, dst = IPv4(b[l.L3:]).Src(), IPv4(b[l.L3:]).Dst()
	case l.EtherType == EtherTypeIPv6:
		src, dst = IPv6(b[l.L3:]).Src(), IPv6(b[l.L3:]).Dst()
	}
	return src, dst
}

// Sound reports whether the network header that EtherType names exists and its
// lengths fit. It is also true for a type that is not parsed.
func (l *Layers) Sound() bool {
	switch l.EtherType {
	case EtherTypeIPv4, EtherTypeIPv6, EtherTypeARP, EtherTypeRARP:
		return l.End != 0
	}
	return l.EtherType != 0
}

// parseType sets EtherType and TCI and returns the offset of the payload.
func (l *Layers) parseType(b []byte) int {
	off := etherType
	t := binary.BigEndian.Uint16(b[off:])
	if IsVLAN(t) && VLAN(b[off:]).Valid() {
		l.TCI = VLAN(b[off:]).TCI() | VLANPresent
		off += VLANLen
		t = binary.BigEndian.Uint16(b[off:])
	}
	off += 2
	if t >= minEtherType {
		l.EtherType = t
		return off
	}
	return l.parseLLC(b, off)
}

// parseLLC reads the type of an 802.3 frame from its SNAP header (RFC 1042), if
// it has one.
func (l *Layers) parseLLC(b []byte, off int) int {
	l.EtherType = EtherTypeLLC
	if len(b)-off < llcSNAPLen || [6]byte(b[off:]) != [6]byte{0xaa, 0xaa, 0x03} {
		return off
	}
	if t := binary.BigEndian.Uint16(b[off+6:]); t >= minEtherType {
		l.EtherType = t
	}
	return off + llcSNAPLen
}

func (l *Layers) parseARP(b []byte, off int) {
	if ARP(b[off:]).Valid() {
		l.L3, l.End = off, off+ARPLen
	}
}

func (l *Layers) parseIPv4(b []byte, off int) {
	h := IPv4(b[off:])
	if len(h) < IPv4Len {
		return
	}
	l.L3 = off
	if !h.Valid() {
		return
	}
	l.End = off + int(h.TotalLen())
	l.Proto, l.Frag = h.Proto(), h.Frag()
	if l.Frag&FragLater == 0 {
		l.setL4(b[:l.End], off+h.HeaderLen())
	}
}

func (l *Layers) parseIPv6(b []byte, off int) {
	h := IPv6(b[off:])
	if len(h) < IPv6Len {
		return
	}
	l.L3 = off
	if !h.Valid() {
		return
	}
	l.End = off + IPv6Len + int(h.PayloadLen())
	x := ReadExtensions(b[off:l.End])
	if !x.Fit {
		return
	}
	l.Proto, l.Frag = x.Proto, x.Frag
	if l.Frag&FragLater == 0 {
		l.setL4(b[:l.End], off+x.End)
	}
}

// setL4 sets L4 to off if the transport header's fixed part is in b. b must end
// with the IP packet.
func (l *Layers) setL4(b []byte, off int) {
	if h := b[off:]; len(h) >= l4Len(l.Proto) && (l.Proto != ProtoTCP || TCP(h).Valid()) {
		l.L4 = off
	}
}

// l4Len is the length of the fixed part of a protocol's header.
func l4Len(proto uint8) int {
	switch proto {
	case ProtoTCP:
		return TCPLen
	case ProtoUDP:
		return UDPLen
	case ProtoICMP, ProtoICMPv6, ProtoIGMP:
		return ICMPLen
	case ProtoSCTP:
		return SCTPLen
	}
	return 0
}
