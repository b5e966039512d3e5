package tuple

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
)

// Packet is a packet's key, and the offsets of its headers in the frame. For an ICMP error the
// headers are those of the quoted packet, and the key is that of a reply to it.
type Packet struct {
	Key         Key
	Related     bool // it is an ICMP error
	L3, L4, End int  // of the packet that the key was read from; it may be cut off at End
}

// Read reads the key of the packet in frame b, with headers at l, in a zone. It reports false for
// a packet that cannot be tracked (CT-6):
//
//   - not an IP packet, or its lengths do not fit
//   - a fragment, which can be tracked only as part of its datagram (reassembly)
//   - a port of 0
//   - an ICMP type that is neither request, reply nor error
//   - an ICMP error that cannot be true
func (s *Packet) Read(b []byte, l *packet.Layers, zone uint16) bool {
	if l.L4 == 0 || l.Frag != 0 {
		return false
	}
	s.L3, s.L4, s.End = l.L3, l.L4, l.End
	k := &s.Key
	k.Zone = zone
	if l.EtherType == packet.EtherTypeIPv4 && l.L4 == l.L3+packet.IPv4Len && (l.Proto == packet.ProtoTCP || l.Proto == packet.ProtoUDP) {
		return k.readPlain(b[l.L3:], l.Proto)
	}
	switch l.EtherType {
	case packet.EtherTypeIPv4:
		k.readIPv4(packet.IPv4(b[l.L3:]))
	case packet.EtherTypeIPv6:
		k.readIPv6(packet.IPv6(b[l.L3:]), l.Proto)
	default:
		return false
	}
	p := b[l.L4:l.End]
	if k.ICMP() && icmpError(k.Proto, p[0]) {
		outer := *k
		return believable(&outer, packet.ICMP(p)) && s.readQuoted(b, l.L4+packet.ICMPLen, &outer)
	}
	return k.readPorts(p)
}

// readPlain reads the key of TCP or UDP after an IPv4 header without options. Most packets are
// like that, and it takes fewer steps than the functions below.
func (k *Key) readPlain(b []byte, proto uint8) bool {
	h := (*[packet.IPv4Len + 4]byte)(b)
	addrs, ports := binary.BigEndian.Uint64(h[12:]), binary.BigEndian.Uint32(h[packet.IPv4Len:])
	k.Src.Hi, k.Src.Lo, k.Dst.Hi, k.Dst.Lo = 0, addrs>>32, 0, addrs&0xffffffff
	k.SrcPort, k.DstPort = uint16(ports>>16), uint16(ports)
	k.Proto, k.Family = proto, IPv4
	return k.SrcPort != 0 && k.DstPort != 0
}

func (k *Key) readIPv4(h packet.IPv4) {
	k.Family, k.Proto = IPv4, h.Proto()
	k.Src, k.Dst = makeAddress(h.SrcBytes()), makeAddress(h.DstBytes())
}

func (k *Key) readIPv6(h packet.IPv6, proto uint8) {
	k.Family, k.Proto = IPv6, proto
	k.Src, k.Dst = makeAddress(h.SrcBytes()), makeAddress(h.DstBytes())
}

// ReadAddresses reads the addresses of a network header of the key's family. For
// IPv4 it reads the protocol, too. For IPv6 the protocol becomes 0.
func (k *Key) ReadAddresses(b []byte) {
	if k.Family == IPv4 {
		k.readIPv4(packet.IPv4(b))
		return
	}
	k.readIPv6(packet.IPv6(b), 0)
}

// readPorts reads the ports from a transport header of at least 8 bytes. It returns false if the
// packet cannot be tracked with them.
func (k *Key) readPorts(p []byte) bool {
	switch k.Proto {
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
		k.SrcPort, k.DstPort = binary.BigEndian.Uint16(p), binary.BigEndian.Uint16(p[2:])
		return k.SrcPort != 0 && k.DstPort != 0
	case packet.ProtoICMP, packet.ProtoICMPv6:
		h := packet.ICMP(p)
		k.SrcPort = h.ID()
		k.DstPort = uint16(h.Type())<<8 | uint16(h.Code())
		ours := (k.Proto == packet.ProtoICMP) == (k.Family == IPv4)
		return ours && h.Code() == 0 && answerType(k.Proto, h.Type()) != h.Type()
	}
	return true
}

// ChecksumsValid says whether the checksums of a packet that Read has accepted are right. It
// skips a transport checksum that the sender left to hardware (CT-8).
func ChecksumsValid(f *packet.Frame, l *packet.Layers) bool {
	b := f.Bytes()
	if l.EtherType == packet.EtherTypeIPv4 && !packet.IPv4(b[l.L3:]).ChecksumValid() {
		return false
	}
	return f.Offload.ChecksumPartial || l.L4Valid(b)
}
