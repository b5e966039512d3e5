package flowcache

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/antrail/antrail/dataplane/lookup"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// Signature is all bits that a walk can read of a packet, except those that conntrack reads. Two
// packets of one signature have the same key (flow.Extract), byte for byte, and their headers lie
// at the same offsets.
//
// A packet has a signature if it is TCP, UDP or an ICMP echo, whole, untagged, with lengths that
// fit. An IPv4 packet must have no options, an IPv6 packet no extension headers. A packet from a
// tunnel must have no Geneve options.
//
// Its words are, each read from the frame in little-endian order:
//
//	0    in_port, and pkt_mark above it
//	1-2  the frame's first 16 bytes: addresses, type, two bytes of the IP header
//	3    ports or ICMP's type, code and identifier; TCP flags; TTL; protocol
//	4-   addresses: one word for IPv4, four for IPv6, then the flow label if Labels
//	     the outer header of a packet from a tunnel, six words
//	     of a wildcard signature: which ports it has (WildPorts, WildBucket)
type Signature struct {
	// Labels says that IPv6's flow label is part of signatures. If it is false, no table reads
	// the label (Program.UsesFlowLabel). Then signatures lack it, although keys have it.
	Labels bool

	n     int // words in use
	hash  uint64
	words [sigWords]uint64
}

const (
	// sigWords is the largest number of words in a signature: IPv6 in a tunnel, and the ports of
	// a wildcard signature.
	sigWords = 16
)

// Offsets in frames with a signature.
const (
	sigL3   = packet.EthernetLen
	sigL4v4 = sigL3 + packet.IPv4Len
	sigL4v6 = sigL3 + packet.IPv6Len
	// HeadLen is the length of the longest headers of a frame with a signature, ports included.
	HeadLen = sigL4v6 + packet.UDPLen
)

// Read makes the signature of a frame that entered by a port, and writes its header offsets to l.
// It returns false if the packet has no signature.
func (s *Signature) Read(f *packet.Frame, inPort uint32, l *packet.Layers) (ok bool) {
	b := f.Bytes()
	if len(b) < sigL4v4+packet.UDPLen {
		return false
	}
	s.words[0] = uint64(inPort) | uint64(f.Mark)<<32
	s.words[1] = binary.LittleEndian.Uint64(b)
	s.words[2] = binary.LittleEndian.Uint64(b[8:])
	var ttl uint8
	switch binary.BigEndian.Uint16(b[12:]) {
	case packet.EtherTypeIPv4:
		ttl, ok = s.readIPv4(b, l)
	case packet.EtherTypeIPv6:
		ttl, ok = s.readIPv6(b, l)
	}
	if !ok || !s.readL4(b[l.L4:l.End], l.Proto, ttl) {
		return false
	}
	if t := &f.Tunnel; t.Src.IsValid() || t.Dst.IsValid() || t.ID != 0 || t.TOS != 0 || t.TTL != 0 {
		if t.Options != "" {
			return false
		}
		s.readTunnel(t)
	}
	s.sum()
	return true
}

// sum computes the hash.
func (s *Signature) sum() {
	h := lookup.Seed
	for _, w := range s.words[:s.n] {
		h = lookup.Mix(h, w)
	}
	s.hash = h
}

// ReadLayers writes a frame's header offsets to l. It returns false if the frame has no
// signature. The signature's words are undefined afterwards.
func (s *Signature) ReadLayers(f *packet.Frame, l *packet.Layers) (ok bool) {
	b := f.Bytes()
	if len(b) < sigL4v4+packet.UDPLen {
		return false
	}
	switch binary.BigEndian.Uint16(b[12:]) {
	case packet.EtherTypeIPv4:
		_, ok = s.readIPv4(b, l)
	case packet.EtherTypeIPv6:
		_, ok = s.readIPv6(b, l)
	}
	return ok && l.End >= l.L4+packet.UDPLen
}

// readIPv4 reads the addresses. TOS is already in the third word.
func (s *Signature) readIPv4(b []byte, l *packet.Layers) (ttl uint8, ok bool) {
	const fragment = 0x3fff // MF and the offset
	total := int(binary.BigEndian.Uint16(b[sigL3+2:]))
	if b[sigL3] != 0x45 || sigL3+total > len(b) || binary.BigEndian.Uint16(b[sigL3+6:])&fragment != 0 {
		return 0, false
	}
	*l = packet.Layers{EtherType: packet.EtherTypeIPv4, L3: sigL3, L4: sigL4v4, End: sigL3 + total, Proto: b[sigL3+9]}
	s.words[4] = binary.LittleEndian.Uint64(b[sigL3+12:])
	s.n = 5
	return b[sigL3+8], l.End >= l.L4
}

// readIPv6 reads the addresses and the rest of the flow label, whose first bits are already in
// the third word. Without Labels it removes those.
func (s *Signature) readIPv6(b []byte, l *packet.Layers) (hops uint8, ok bool) {
	if len(b) < sigL4v6+packet.UDPLen {
		return 0, false
	}
	end := sigL4v6 + int(binary.BigEndian.Uint16(b[sigL3+4:]))
	if b[sigL3]>>4 != 6 || end > len(b) {
		return 0, false
	}
	*l = packet.Layers{EtherType: packet.EtherTypeIPv6, L3: sigL3, L4: sigL4v6, End: end, Proto: b[sigL3+6]}
	for i := range 4 {
		s.words[4+i] = binary.LittleEndian.Uint64(b[sigL3+8+8*i:])
	}
	s.n = 8
	if s.Labels {
		s.words[8] = uint64(binary.LittleEndian.Uint16(b[sigL3+2:]))
		s.n = 9
	} else {
		s.words[2] &^= 0xf << 56
	}
	return b[sigL3+7], true
}

// readL4 reads ports and TCP flags, or an ICMP echo's type, code and identifier. It returns false
// if b lacks the transport header.
func (s *Signature) readL4(b []byte, proto, ttl uint8) bool {
	if len(b) < packet.UDPLen {
		return false
	}
	var low, flags uint64
	switch proto {
	case packet.ProtoTCP:
		h := packet.TCP(b)
		if !h.Valid() {
			return false
		}
		low, flags = uint64(binary.LittleEndian.Uint32(b)), uint64(h.Flags())
	case packet.ProtoUDP:
		low = uint64(binary.LittleEndian.Uint32(b))
	case packet.ProtoICMP, packet.ProtoICMPv6:
		if !isEcho(proto, b[0]) {
			return false
		}
		low = uint64(binary.LittleEndian.Uint16(b)) | uint64(binary.LittleEndian.Uint16(b[4:]))<<16
	default:
		return false
	}
	s.words[3] = low | flags<<32 | uint64(ttl)<<48 | uint64(proto)<<56
	return true
}

// isEcho says whether an ICMP type is that of an echo request or reply.
func isEcho(proto, typ uint8) bool {
	if proto == packet.ProtoICMP {
		return typ == packet.ICMPEcho || typ == packet.ICMPEchoReply
	}
	return typ == packet.ICMPv6Echo || typ == packet.ICMPv6EchoReply
}

// readTunnel reads the outer header.
func (s *Signature) readTunnel(t *packet.Tunnel) {
	words := s.words[s.n:]
	words[0] = t.ID
	words[1] = uint64(t.TOS) | uint64(t.TTL)<<8 | family(t.Src)<<16 | family(t.Dst)<<24
	src, dst := t.Src.As16(), t.Dst.As16()
	words[2], words[3] = binary.LittleEndian.Uint64(src[:]), binary.LittleEndian.Uint64(src[8:])
	words[4], words[5] = binary.LittleEndian.Uint64(dst[:]), binary.LittleEndian.Uint64(dst[8:])
	s.n += 6
}

// family is different for an IPv4 address, an IPv6 address and none.
func family(a netip.Addr) uint64 { return uint64(a.BitLen()) / 32 }

// Tuple returns flow.Key.Tuple of the key of a TCP or UDP packet.
func (s *Signature) Tuple() (t [6]uint64) {
	if s.words[2]>>32&0xffff == 0xdd86 { // the EtherType, its first byte lowest
		copy(t[1:5], s.words[4:])
	} else {
		t[0] = s.words[4]
	}
	t[5] = s.words[3]>>56<<32 | uint64(bits.ReverseBytes32(uint32(s.words[3])))
	return t
}

// TCPFlags returns the TCP flags of a signature, 0 for other protocols.
func (s *Signature) TCPFlags() uint16 { return uint16(s.words[3]>>32) & 0xfff }

// Marked says that a signature has a mark.
func (s *Signature) Marked() bool { return s.words[0]>>32 != 0 }

// HasPorts says whether a protocol has a source and a destination port that a wildcard signature
// may leave out.
func HasPorts(proto uint8) bool { return proto == packet.ProtoTCP || proto == packet.ProtoUDP }

// Offsets in an offload key: the outer source, the first two bytes of the IP header, and IPv6's
// next two.
const (
	keyOuter = 4
	keyIP    = 8 + sigL3
	keyLabel = 64
)

// OffloadKey returns the kernel's key for packets of a signature that enter by a link. The frame
// begins as b. outer is the source of a packet from a tunnel; the key has its last four bytes.
// IPv6 packets of another flow label have another key, because the kernel compares whole words.
func (s *Signature) OffloadKey(link uint32, b []byte, outer netip.Addr) (key ports.OffloadKey) {
	binary.NativeEndian.PutUint32(key[:], link)
	if outer.IsValid() {
		from := outer.As16()
		copy(key[keyOuter:], from[12:])
	}
	inner := 5
	if binary.BigEndian.Uint16(b[12:]) == packet.EtherTypeIPv6 {
		inner = 8
	}
	for i, w := range s.words[1:inner] {
		binary.LittleEndian.PutUint64(key[8+8*i:], w)
	}
	if binary.BigEndian.Uint16(b[12:]) == packet.EtherTypeIPv6 {
		key[keyIP+1] = b[sigL3+1]
		copy(key[keyLabel:], b[sigL3+2:sigL3+4])
	}
	return key
}

// ShowSource returns an offload key for packets with another Ethernet source address.
func ShowSource(key ports.OffloadKey, source [6]byte) ports.OffloadKey {
	const keySource = 8 + 6
	copy(key[keySource:], source[:])
	return key
}

// FrameOfKey returns the headers of a packet that has an offload key, without payload. It is the
// inverse of OffloadKey.
func FrameOfKey(key *ports.OffloadKey) []byte {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(key[8*i:]) }
	b := make([]byte, sigL4v6+packet.TCPLen)
	binary.LittleEndian.PutUint64(b, word(1))
	binary.LittleEndian.PutUint64(b[8:], word(2))
	low, flags, ttl, proto := uint32(word(3)), uint16(word(3)>>32), uint8(word(3)>>48), uint8(word(3)>>56)
	l4 := sigL4v4
	if packet.Ethernet(b).Type() == packet.EtherTypeIPv6 {
		l4 = sigL4v6
		binary.LittleEndian.PutUint16(b[sigL3+2:], uint16(word(8)))
		packet.IPv6(b[sigL3:]).SetPayloadLen(packet.TCPLen)
		b[sigL3+6], b[sigL3+7] = proto, ttl
		for i := range 4 {
			binary.LittleEndian.PutUint64(b[sigL3+8+8*i:], word(4+i))
		}
	} else {
		binary.BigEndian.PutUint16(b[sigL3+2:], packet.IPv4Len+packet.TCPLen)
		b[sigL3+8], b[sigL3+9] = ttl, proto
		binary.LittleEndian.PutUint64(b[sigL3+12:], word(4))
	}
	binary.LittleEndian.PutUint32(b[l4:], low)
	if proto == packet.ProtoTCP {
		packet.TCP(b[l4:]).SetFlags(flags)
		packet.TCP(b[l4:]).SetHeaderLen(packet.TCPLen)
	}
	return b[:l4+packet.TCPLen]
}
