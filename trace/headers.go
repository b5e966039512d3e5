package trace

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/antrail/antrail/packet"
)

// Headers of a packet in lines, as VPP's packet trace writes them.

// layersOf is a frame with the places of its headers. If only its first bytes
// were recorded, it is padded with zeros.
func layersOf(frame []byte) ([]byte, packet.Layers) {
	l := packet.ParseLayers(frame)
	if l.L3 == 0 || l.End != 0 {
		return frame, l
	}
	if n := claimed(frame, &l); n > len(frame) {
		frame = append(frame[:len(frame):len(frame)], make([]byte, n-len(frame))...)
		l = packet.ParseLayers(frame)
	}
	return frame, l
}

// claimed is the length of a frame by its IP header; 0 for others.
func claimed(frame []byte, l *packet.Layers) int {
	switch {
	case l.L3 == 0:
	case l.EtherType == packet.EtherTypeIPv4:
		return l.L3 + int(packet.IPv4(frame[l.L3:]).TotalLen())
	case l.EtherType == packet.EtherTypeIPv6:
		return l.L3 + packet.IPv6Len + int(packet.IPv6(frame[l.L3:]).PayloadLen())
	}
	return 0
}

// ethernetLines is one line: IP4: source -> destination.
func ethernetLines(frame []byte) []string {
	if len(frame) < packet.EthernetLen {
		return nil
	}
	e := packet.Ethernet(frame)
	return []string{fmt.Sprintf("%s: %s -> %s", etherName(frame), packet.MAC(e.Src()), packet.MAC(e.Dst()))}
}

// etherName is the type of a frame's payload: IP4, IP6, ARP, or its number.
func etherName(frame []byte) string {
	switch l := packet.ParseLayers(frame); l.EtherType {
	case packet.EtherTypeIPv4:
		return "IP4"
	case packet.EtherTypeIPv6:
		return "IP6"
	case packet.EtherTypeARP:
		return "ARP"
	default:
		return fmt.Sprintf("0x%04x", l.EtherType)
	}
}

// networkLines describe the payload of the Ethernet header.
func networkLines(frame []byte) []string {
	frame, l := layersOf(frame)
	switch {
	case l.L3 == 0:
		return nil
	case l.EtherType == packet.EtherTypeIPv4:
		return append(ipv4Lines(frame[l.L3:], &l), transportLines(frame, &l)...)
	case l.EtherType == packet.EtherTypeIPv6:
		h := packet.IPv6(frame[l.L3:])
		return append([]string{
			fmt.Sprintf("%s: %v -> %v", protocolName(l.Proto), h.Src(), h.Dst()),
			fmt.Sprintf("  tos 0x%02x, flow label 0x%05x, hop limit %d, payload length %d", h.TrafficClass(), h.FlowLabel(), h.HopLimit(), h.PayloadLen()),
		}, transportLines(frame, &l)...)
	case l.EtherType == packet.EtherTypeARP:
		a := packet.ARP(frame[l.L3:])
		return []string{fmt.Sprintf("%s, %v -> %v", map[uint16]string{1: "request", 2: "reply"}[a.Op()], a.SPA(), a.TPA())}
	}
	return nil
}

func ipv4Lines(h packet.IPv4, l *packet.Layers) []string {
	fragment := fmt.Sprintf("  fragment id 0x%04x", h.ID())
	if l.Frag != 0 {
		fragment += fmt.Sprintf(" offset %d", h.FragmentOffset())
	}
	var flags []string
	for _, f := range []struct {
		bit  uint16
		name string
	}{{packet.IPv4MoreFragments, "MORE_FRAGMENTS"}, {packet.IPv4DontFragment, "DONT_FRAGMENT"}} {
		if h.FlagsOffset()&f.bit != 0 {
			flags = append(flags, f.name)
		}
	}
	if len(flags) > 0 {
		fragment += ", flags " + strings.Join(flags, " ")
	}
	return []string{
		fmt.Sprintf("%s: %v -> %v", protocolName(l.Proto), h.Src(), h.Dst()),
		fmt.Sprintf("  tos 0x%02x, ttl %d, length %d, checksum 0x%04x", h.TOS(), h.TTL(), h.TotalLen(), h.Checksum()),
		fragment,
	}
}

// protocolName is an IP protocol in capitals.
func protocolName(proto uint8) string {
	if name := protocolNames[proto]; name != "" {
		return strings.ToUpper(name)
	}
	return fmt.Sprintf("protocol %d", proto)
}

func transportLines(frame []byte, l *packet.Layers) []string {
	if l.L4 == 0 || l.End < l.L4+packet.UDPLen {
		return nil
	}
	b, name := frame[l.L4:l.End], protocolName(l.Proto)
	ports := packet.UDP(b) // the ports begin all headers that have some
	switch l.Proto {
	case packet.ProtoTCP:
		return tcpLines(b)
	case packet.ProtoUDP:
		return []string{fmt.Sprintf("%s: %d -> %d", name, ports.SrcPort(), ports.DstPort()),
			fmt.Sprintf("  length %d, checksum 0x%04x", binary.BigEndian.Uint16(b[4:]), binary.BigEndian.Uint16(b[6:]))}
	case packet.ProtoSCTP:
		return []string{fmt.Sprintf("%s: %d -> %d", name, ports.SrcPort(), ports.DstPort())}
	case packet.ProtoICMP, packet.ProtoICMPv6:
		return []string{fmt.Sprintf("%s type %d code %d, checksum 0x%04x", name, b[0], b[1], binary.BigEndian.Uint16(b[2:]))}
	}
	return nil
}

func tcpLines(h packet.TCP) []string {
	if !h.Valid() {
		return nil
	}
	flags := strings.ToUpper(strings.ReplaceAll(tcpFlags(h.Flags()), ",", " "))
	return []string{
		fmt.Sprintf("TCP: %d -> %d", h.SrcPort(), h.DstPort()),
		fmt.Sprintf("  seq. 0x%08x ack 0x%08x", h.Seq(), h.Ack()),
		fmt.Sprintf("  flags 0x%02x %s, tcp header: %d bytes", h.Flags(), flags, h.HeaderLen()),
		fmt.Sprintf("  window %d, checksum 0x%04x", h.Window(), h.Checksum()),
	}
}

// tupleLine is a packet's tuple in the form of VPP's access lists; "" if the
// packet is not IP. port is its input port, or its output port.
func tupleLine(frame []byte, way string, port uint32) string {
	frame, l := layersOf(frame)
	src, dst := l.Addrs(frame)
	if l.End == 0 || !src.IsValid() {
		return ""
	}
	family := "ip4"
	if src.Is6() {
		family = "ip6"
	}
	s := fmt.Sprintf("%s sw_if_index %d (lsb16 %d) l3 %s %v -> %v l4 proto %d", way, port, uint16(port), family, src, dst, l.Proto)
	if l.L4 == 0 || l.End < l.L4+packet.UDPLen {
		return s + " l4_valid 0"
	}
	b := frame[l.L4:l.End]
	switch l.Proto {
	case packet.ProtoICMP, packet.ProtoICMPv6:
		return s + fmt.Sprintf(" l4_valid 1 type %d code %d", b[0], b[1])
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
		s += fmt.Sprintf(" l4_valid 1 port %d -> %d", packet.UDP(b).SrcPort(), packet.UDP(b).DstPort())
	}
	if h := packet.TCP(b); l.Proto == packet.ProtoTCP && h.Valid() {
		s += fmt.Sprintf(" tcp flags (valid) %02x rsvd %x", h.Flags()&0xff, h.Flags()>>8)
	}
	return s
}
