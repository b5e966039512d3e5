package trace

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/antrail/antrail/packet"
)

// protocolNames are short names of protocols.
var protocolNames = map[uint8]string{
	packet.ProtoTCP: "tcp", packet.ProtoUDP: "udp", packet.ProtoSCTP: "sctp", packet.ProtoICMP: "icmp", packet.ProtoICMPv6: "icmp6",
}

// flagNames are the names of TCP's flags, from the lowest bit.
var flagNames = []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"}

// Summary is a frame in a few words: "tcp 10.10.0.26:40000 > 10.10.0.24:80 syn".
func Summary(frame []byte) string {
	if len(frame) < packet.EthernetLen {
		return fmt.Sprintf("%d bytes", len(frame))
	}
	l := packet.ParseLayers(frame)
	src, dst := l.Addrs(frame)
	switch {
	case src.IsValid():
		return summaryIP(frame, &l, src, dst)
	case l.EtherType == packet.EtherTypeARP && l.L3 != 0:
		a := packet.ARP(frame[l.L3:])
		return fmt.Sprintf("arp %s %v > %v", map[uint16]string{1: "request", 2: "reply"}[a.Op()], a.SPA(), a.TPA())
	}
	e := packet.Ethernet(frame)
	return fmt.Sprintf("ethertype 0x%04x %s > %s", e.Type(), packet.MAC(e.Src()), packet.MAC(e.Dst()))
}

func summaryIP(frame []byte, l *packet.Layers, src, dst netip.Addr) string {
	name := protocolNames[l.Proto]
	if name == "" {
		name = fmt.Sprintf("protocol %d", l.Proto)
	}
	if l.L4 == 0 || l.End < l.L4+4 {
		if l.Frag != 0 {
			name += " fragment"
		}
		return fmt.Sprintf("%s %v > %v", name, src, dst)
	}
	b := frame[l.L4:l.End]
	switch l.Proto {
	case packet.ProtoICMP, packet.ProtoICMPv6:
		return fmt.Sprintf("%s %v > %v type %d code %d", name, src, dst, b[0], b[1])
	case packet.ProtoTCP, packet.ProtoUDP, packet.ProtoSCTP:
		ports := packet.UDP(b) // the ports begin all three headers
		s := fmt.Sprintf("%s %v > %v", name, netip.AddrPortFrom(src, ports.SrcPort()), netip.AddrPortFrom(dst, ports.DstPort()))
		if h := packet.TCP(b); l.Proto == packet.ProtoTCP && h.Valid() {
			s += " " + tcpFlags(h.Flags())
		}
		return s
	}
	return fmt.Sprintf("%s %v > %v", name, src, dst)
}

// tcpFlags are flags in words.
func tcpFlags(flags uint16) string {
	var all []string
	for i, name := range flagNames {
		if flags>>i&1 != 0 {
			all = append(all, name)
		}
	}
	return strings.Join(all, ",")
}
