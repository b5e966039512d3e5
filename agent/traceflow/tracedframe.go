package traceflow

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"net"

	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/control/cluster"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/flow/parse"
	"github.com/antrail/antrail/packet"
)

// usualTTL is the TTL of a packet if its Traceflow has none.
const usualTTL = 64

// protocol is the name of a packet's protocol in matches and in tcpdump expressions.
func protocol(p *cluster.TracedPacket) (match, expression string) {
	switch {
	case p.Protocol == packet.ProtoTCP && p.IPv6:
		return "tcp6", "ip6 and tcp"
	case p.Protocol == packet.ProtoTCP:
		return "tcp", "ip and tcp"
	case p.Protocol == packet.ProtoUDP && p.IPv6:
		return "udp6", "ip6 and udp"
	case p.Protocol == packet.ProtoUDP:
		return "udp", "ip and udp"
	case p.IPv6:
		return "icmp6", "icmp6"
	}
	return "icmp", "icmp"
}

// hasPorts says whether a packet has ports.
func hasPorts(p *cluster.TracedPacket) bool {
	return p.Protocol == packet.ProtoTCP || p.Protocol == packet.ProtoUDP
}

// firstDynamic is the first of the ports for clients (RFC 6335, section 6).
const firstDynamic = 49152

// chosen is the packet with its defaults filled in. All Nodes choose the same, because they
// find the packet by its source port.
func chosen(t *cluster.Traceflow) cluster.TracedPacket {
	p, h := t.Packet, hashOf(t)
	p.TTL = cmp.Or(p.TTL, usualTTL)
	p.SrcPort = cmp.Or(p.SrcPort, uint16(firstDynamic+h%(1<<16-firstDynamic)))
	p.ICMPID = cmp.Or(p.ICMPID, uint16(h|1))
	return p
}

// hashOf is a number that differs from Traceflow to Traceflow.
func hashOf(t *cluster.Traceflow) uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s %s", t.UID, t.Key.Name)
	return h.Sum32()
}

// frameOf is a Traceflow's packet.
func frameOf(t *cluster.Traceflow, tag uint8, ends *control.TracedEnds) ([]byte, error) {
	p := chosen(t)
	proto, _ := protocol(&p)
	family := "nw"
	if p.IPv6 {
		family = "ipv6"
	}
	text := fmt.Sprintf("%s,dl_src=%s,dl_dst=%s,%s_src=%s,%s_dst=%s,nw_tos=%d,nw_ttl=%d", proto,
		net.HardwareAddr(ends.SrcMAC[:]), net.HardwareAddr(ends.DstMAC[:]), family, ends.Src, family, ends.Dst, tag<<2, p.TTL)
	switch {
	case p.Protocol == packet.ProtoTCP:
		text += fmt.Sprintf(",tp_src=%d,tp_dst=%d,tcp_flags=0x%03x/0xfff", p.SrcPort, p.DstPort, p.TCPFlags)
	case p.Protocol == packet.ProtoUDP:
		text += fmt.Sprintf(",tp_src=%d,tp_dst=%d", p.SrcPort, p.DstPort)
	case p.IPv6:
		text += fmt.Sprintf(",icmp_type=%d,icmp_code=0", packet.ICMPv6Echo)
	default:
		text += fmt.Sprintf(",icmp_type=%d,icmp_code=0", packet.ICMPEcho)
	}
	m, err := parse.Match(text, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	b := flow.Compose(&m.Value)
	return finished(b, &p), nil
}

// finished adds what no field of a match has.
func finished(b []byte, p *cluster.TracedPacket) []byte {
	l := packet.ParseLayers(b)
	if !hasPorts(p) {
		h := packet.ICMP(b[l.L4:])
		h.SetID(p.ICMPID)
		h.SetSeq(p.ICMPSeq)
		l.SetL4Checksum(b)
	}
	if p.DontFragment && !p.IPv6 {
		h := packet.IPv4(b[l.L3:])
		h.SetFlagsOffset(packet.IPv4DontFragment)
		h.UpdateChecksum()
	}
	return b
}
