package packet

import "encoding/binary"

// Layers says where the headers of a frame begin: byte offsets from the
// frame's first byte. It is what everybody who reads a packet shares, computed
// once by ParseLayers, which goes by Open vSwitch's flow extraction. An offset
// of 0 means "not there" (the Ethernet header is always at 0).
//
// A header counts as there only when its fixed part lies inside the frame, so
// the accessors of that part behind a non-zero offset never reach past the
// end. Variable parts (TCP options, a UDP payload, a quoted packet) have their
// own Valid.
type Layers struct {
	// EtherType is the type behind a VLAN tag (0x0800, 0x86dd, 0x0806 …);
	// EtherTypeLLC for an 802.3 frame without one, 0 for less than a header.
	EtherType uint16
	// TCI is the outermost VLAN tag's control information with bit 0x1000 set,
	// or 0 without a tag (as Open vSwitch keeps vlan_tci).
	TCI uint16
	// L3 is where IPv4, IPv6 or ARP begins: its fixed part is inside the
	// frame. Whether it is sound says End.
	L3 int
	// L4 is where the transport header begins: only for the first fragment or
	// a whole packet, only when the IP header is sound, and only when the
	// fixed part (TCP 20 bytes and its options, UDP 8, ICMP 8, SCTP 12) is
	// inside End. For any other protocol it is where the IP payload begins.
	L4 int
	// End is where the IP packet ends by its own length field: Ethernet
	// padding lies behind it. It is 0 when the IP or ARP header is not sound:
	// wrong version, lengths that do not fit the frame, ARP for other than
	// IPv4 over Ethernet. Then Proto, Frag and L4 are 0 too.
	End int
	// Proto is the IP protocol behind IPv6 extension headers. As in Open
	// vSwitch it is 44 for an IPv6 fragment that is not the first, and 0 for
	// an IPv6 header whose extension headers do not fit.
	Proto uint8
	// Frag holds FragAny for any fragment and FragLater for one that is not
	// the first.
	Frag uint8
}

// Bits of Layers.Frag (as Open vSwitch's nw_frag).
const (
	FragAny   = 1
	FragLater = 2
)

// ParseLayers finds the headers of a frame. It never fails: what cannot be
// read is left at 0. One VLAN tag is stepped over. Behind a second one nothing is
// read, as in Open vSwitch with its vlan-limit of 1: EtherType is the second tag's.
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

// Sound reports whether the network header that EtherType promises is there and
// its lengths fit: true also for a type that is not read at all.
func (l *Layers) Sound() bool {
	switch l.EtherType {
	case EtherTypeIPv4, EtherTypeIPv6, EtherTypeARP, EtherTypeRARP:
		return l.End != 0
	}
	return l.EtherType != 0
}

// parseType sets EtherType and TCI and returns where the payload begins.
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

// parseLLC reads the type of an 802.3 frame from its SNAP header (RFC 1042),
// when it has one.
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

// setL4 sets L4 to off when the transport header's fixed part is in b, which
// ends where the IP packet does.
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
