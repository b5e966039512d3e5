package flowcache

import (
	"encoding/binary"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
)

// Change is the change that a walk makes to the headers of a frame with a signature. A replay
// applies it: it copies bytes and adjusts checksums by the difference (RFC 1624), as the walk's
// own writes would.
type Change struct {
	Parts Parts
	TTL   uint8
	Eth   [12]byte // both addresses
	IP    [4]byte  // IPv6: the first four bytes; IPv4: TOS in the second
	Ports [4]byte
	// Differences to the sums of the IP header, of the addresses in the pseudo header, and of the
	// ports.
	IPSum, PseudoSum, PortSum uint16
	Addrs                     [32]byte // IPv4: 8
}

// Parts says which parts of a frame change.
type Parts uint8

// The parts.
const (
	PartEth     Parts = 1 << iota // Ethernet addresses
	PartIP                        // TOS or traffic class, and TTL or hop limit
	PartAddrs                     // IP addresses
	PartPorts                     // ports
	PartLabel                     // of PartIP: the flow label
	PartSrcPort                   // of PartPorts: the source port
)

// Head is the headers of a frame before its walk.
type Head [HeadLen]byte

// CopyFrom copies a frame's headers.
func (h *Head) CopyFrom(b []byte) {
	if len(b) >= len(h) {
		*h = Head(b)
	} else {
		copy(h[:], b)
	}
}

// SameTuple says whether a frame still has the addresses and ports of h. l has the offsets of the
// headers.
func (h *Head) SameTuple(b []byte, l *packet.Layers) bool {
	if len(b) < l.L4+packet.UDPLen {
		return false
	}
	if l.EtherType == packet.EtherTypeIPv6 {
		const addrs = sigL3 + 8
		return string(b[addrs:l.L4+6]) == string(h[addrs:l.L4+6])
	}
	const addrs, ports = sigL3 + 12, sigL4v4 - 2 // two overlapping words, up to the end of the ports or an ICMP identifier
	return binary.LittleEndian.Uint64(b[addrs:]) == binary.LittleEndian.Uint64(h[addrs:]) &&
		binary.LittleEndian.Uint64(b[ports:]) == binary.LittleEndian.Uint64(h[ports:])
}

// Between finds the change from the headers before to the frame as it is now. It returns false if
// Change cannot hold the change.
func (ch *Change) Between(l *packet.Layers, before []byte, f *packet.Frame) bool {
	b := f.Bytes()
	if now := packet.ParseLayers(b); now != *l {
		return false
	}
	differ := func(from, to int) bool { return string(before[from:to]) != string(b[from:to]) }
	if differ(0, 12) {
		ch.Parts |= PartEth
		copy(ch.Eth[:], b)
	}
	n := 8
	addrs, ttl := sigL3+12, sigL3+8
	if l.EtherType == packet.EtherTypeIPv6 {
		n, addrs, ttl = 32, sigL3+8, sigL3+7
		if packet.IPv6(before[sigL3:]).FlowLabel() != packet.IPv6(b[sigL3:]).FlowLabel() {
			ch.Parts |= PartLabel
		}
	}
	if differ(sigL3, sigL3+4) || differ(ttl, ttl+1) {
		ch.Parts |= PartIP
		copy(ch.IP[:], b[sigL3:])
		ch.TTL = b[ttl]
		ch.IPSum = sumChange(ch.IPSum, before[sigL3:sigL3+2], b[sigL3:])
		ch.IPSum = sumChange(ch.IPSum, before[ttl&^1:ttl&^1+2], b[ttl&^1:])
	}
	if differ(addrs, addrs+n) {
		ch.Parts |= PartAddrs
		copy(ch.Addrs[:n], b[addrs:])
		ch.PseudoSum = sumChange(0, before[addrs:addrs+n], b[addrs:])
		ch.IPSum = fold(uint32(ch.IPSum) + uint32(ch.PseudoSum))
	}
	ports := before[l.L4 : l.L4+4]
	if l.Proto == packet.ProtoICMP || l.Proto == packet.ProtoICMPv6 { // if NAT changes an identifier, the packet walks
		return !differ(l.L4, l.L4+2) && !differ(l.L4+4, l.L4+6)
	}
	if string(ports) != string(b[l.L4:l.L4+4]) {
		ch.Parts |= PartPorts
		copy(ch.Ports[:], b[l.L4:])
		ch.PortSum = sumChange(0, ports, b[l.L4:])
		if string(ports[:2]) != string(b[l.L4:l.L4+2]) {
			ch.Parts |= PartSrcPort
		}
	}
	return true
}

// sumChange adds to a sum the difference between 16-bit words before and after.
func sumChange(sum uint16, before, after []byte) uint16 {
	for i := 0; i < len(before); i += 2 {
		sum = fold(uint32(sum) + uint32(^binary.BigEndian.Uint16(before[i:])) + uint32(binary.BigEndian.Uint16(after[i:])))
	}
	return sum
}

// fold adds the carries of s back in.
func fold(s uint32) uint16 {
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}

// Ambiguous says whether a checksum of a frame has one of the two values that mean zero. From
// these, one adjustment and several may end at different values.
func Ambiguous(f *packet.Frame, l *packet.Layers) bool {
	b := f.Bytes()
	if l.EtherType == packet.EtherTypeIPv4 && binary.BigEndian.Uint16(b[sigL3+10:]) == 0xffff {
		return true
	}
	v := binary.BigEndian.Uint16(b[l.L4+ChecksumAt(l.Proto):])
	if f.Offload.ChecksumPartial {
		return v == 0
	}
	return v == 0xffff
}

// ChecksumAt returns the offset of the checksum in a transport header.
func ChecksumAt(proto uint8) int {
	switch proto {
	case packet.ProtoTCP:
		return 16
	case packet.ProtoUDP:
		return 6
	}
	return 2 // ICMP
}

// Apply changes the headers of a frame, and the checksums over them.
func (ch *Change) Apply(f *packet.Frame, l *packet.Layers) {
	b := f.Bytes()
	if ch.Parts&PartEth != 0 {
		copy(b, ch.Eth[:])
	}
	if l.EtherType == packet.EtherTypeIPv4 {
		ch.applyIPv4(b)
	} else {
		ch.applyIPv6(b)
	}
	switch {
	case ch.Parts&PartSrcPort != 0:
		copy(b[l.L4:], ch.Ports[:])
	case ch.Parts&PartPorts != 0: // the source port stays the frame's own
		copy(b[l.L4+2:], ch.Ports[2:])
	}
	if ch.Parts&(PartAddrs|PartPorts) != 0 {
		ch.fixL4(f, l)
	}
}

func (ch *Change) applyIPv4(b []byte) {
	if ch.Parts&(PartIP|PartAddrs) == 0 {
		return
	}
	if ch.Parts&PartIP != 0 {
		b[sigL3+1], b[sigL3+8] = ch.IP[1], ch.TTL
	}
	if ch.Parts&PartAddrs != 0 {
		copy(b[sigL3+12:], ch.Addrs[:8])
	}
	packet.AdjustChecksum(b[sigL3+10:], 0xffff, ch.IPSum)
}

func (ch *Change) applyIPv6(b []byte) {
	if ch.Parts&PartIP != 0 {
		ip := ch.FirstIPv6(b)
		copy(b[sigL3:], ip[:])
		b[sigL3+7] = ch.TTL
	}
	if ch.Parts&PartAddrs != 0 {
		copy(b[sigL3+8:], ch.Addrs[:])
	}
}

// FirstIPv6 returns the new first four bytes of a frame's IPv6 header. The flow label stays the
// frame's own unless the walk changed it.
func (ch *Change) FirstIPv6(b []byte) [4]byte {
	ip := ch.IP
	if ch.Parts&PartLabel == 0 {
		ip[1] = ip[1]&0xf0 | b[sigL3+1]&0x0f
		ip[2], ip[3] = b[sigL3+2], b[sigL3+3]
	}
	return ip
}

// fixL4 adjusts the transport checksum. Over UDP, 0 means no checksum. A partial checksum covers
// only the addresses, and its field holds the sum itself.
func (ch *Change) fixL4(f *packet.Frame, l *packet.Layers) {
	field := f.Bytes()[l.L4+ChecksumAt(l.Proto):]
	switch {
	case f.Offload.ChecksumPartial:
		packet.AdjustSum(field, 0xffff, ch.PseudoSum)
	case l.Proto == packet.ProtoTCP:
		packet.AdjustChecksum(field, 0xffff, fold(uint32(ch.PseudoSum)+uint32(ch.PortSum)))
	case l.Proto == packet.ProtoUDP:
		packet.AdjustUDP(field, 0xffff, fold(uint32(ch.PseudoSum)+uint32(ch.PortSum)))
	case l.Proto == packet.ProtoICMPv6:
		packet.AdjustChecksum(field, 0xffff, ch.PseudoSum)
	}
}

// OffloadParts returns the parts in the kernel programs' encoding.
func (p Parts) OffloadParts() (parts ports.OffloadParts) {
	for _, both := range []struct {
		ours   Parts
		theirs ports.OffloadParts
	}{
		{PartEth, ports.OffloadEth}, {PartIP, ports.OffloadIP},
		{PartAddrs, ports.OffloadAddrs}, {PartPorts, ports.OffloadPorts},
	} {
		if p&both.ours != 0 {
			parts |= both.theirs
		}
	}
	return parts
}
