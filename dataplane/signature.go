package dataplane

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/antrail/antrail/packet"
)

const (
	// sigWords is the most words that a signature has: IPv6 in a tunnel.
	sigWords = 15
	// plainWords is the most without a tunnel.
	plainWords = 9
)

// signature is all that a walk can read of a packet, but for what conntrack
// reads: two packets of one signature have the same key (flow.Extract), byte for
// byte, and their headers lie at the same places. It exists for the packets
// that the connection cache is for: TCP, UDP and ICMP echo in an untagged IPv4
// packet without options or IPv6 packet without extension headers, whole and
// with lengths that fit. Without labels it leaves out IPv6's flow label, which is in
// the keys of all packets and in nothing else that walks read (flowlabel.go).
type signature struct {
	n      int  // words in use
	labels bool // the flow label is in it
	hash   uint64
	words  [sigWords]uint64
}

// Offsets in the frames that have a signature.
const (
	sigL3   = packet.EthernetLen
	sigL4v4 = sigL3 + packet.IPv4Len
	sigL4v6 = sigL3 + packet.IPv6Len
)

// read makes the signature of a frame, and writes to l where its headers are. It
// reports false for a packet that has none.
func (s *signature) read(f *packet.Frame, inPort uint32, l *packet.Layers) (ok bool) {
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
		s.readTunnel(t)
	}
	s.sum()
	return true
}

// sum makes the hash.
func (s *signature) sum() {
	h := lookupSeed
	for _, w := range s.words[:s.n] {
		h = mix(h, w)
	}
	s.hash = h
}

// layers writes to l where the headers of a frame are, if it may have a signature.
// What the signature had is gone.
func (s *signature) layers(f *packet.Frame, l *packet.Layers) (ok bool) {
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

// readIPv4 takes the addresses; TOS is in the third word already.
func (s *signature) readIPv4(b []byte, l *packet.Layers) (ttl uint8, ok bool) {
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

// readIPv6 takes the addresses, and the rest of the flow label, whose first bits are in
// the third word already, or no bit of it.
func (s *signature) readIPv6(b []byte, l *packet.Layers) (hops uint8, ok bool) {
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
	if s.labels {
		s.words[8] = uint64(binary.LittleEndian.Uint16(b[sigL3+2:]))
		s.n = 9
	} else {
		s.words[2] &^= 0xf << 56
	}
	return b[sigL3+7], true
}

// readL4 takes ports and TCP flags, or an ICMP echo's type, code and
// identifier, and says whether the transport header in b is there.
func (s *signature) readL4(b []byte, proto, ttl uint8) bool {
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

// readTunnel takes the outer header.
func (s *signature) readTunnel(t *packet.Tunnel) {
	words := s.words[s.n:]
	words[0] = t.ID
	words[1] = uint64(t.TOS) | uint64(t.TTL)<<8 | family(t.Src)<<16 | family(t.Dst)<<24
	src, dst := t.Src.As16(), t.Dst.As16()
	words[2], words[3] = binary.LittleEndian.Uint64(src[:]), binary.LittleEndian.Uint64(src[8:])
	words[4], words[5] = binary.LittleEndian.Uint64(dst[:]), binary.LittleEndian.Uint64(dst[8:])
	s.n += 6
}

// family tells an IPv4 address, an IPv6 address and none apart.
func family(a netip.Addr) uint64 { return uint64(a.BitLen()) / 32 }

// tuple is what flow.Key.Tuple is of a packet over TCP or UDP.
func (s *signature) tuple() (t [6]uint64) {
	if s.words[2]>>32&0xffff == 0xdd86 { // the type, its first byte lowest
		copy(t[1:5], s.words[4:])
	} else {
		t[0] = s.words[4]
	}
	t[5] = s.words[3]>>56<<32 | uint64(bits.ReverseBytes32(uint32(s.words[3])))
	return t
}

// tcpFlags is the TCP flags of a signature, 0 for other protocols.
func (s *signature) tcpFlags() uint16 { return uint16(s.words[3]>>32) & 0xfff }
