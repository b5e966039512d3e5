package appctl

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/antrail/antrail/conntrack"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// The line "Datapath actions" describes the output in the words of Open vSwitch's datapath. A
// set() changes the packet from its state at the last output to its state at this one.

// datapathSet is a set() and the fields that it writes, in its order.
type datapathSet struct {
	of     string
	fields []datapathField
}

type datapathField struct {
	name string
	id   flow.FieldID
}

// datapathSets are the set() of all headers. headersOf chooses those of a packet.
var datapathSets = []datapathSet{
	{"eth", []datapathField{{"src", flow.EthSrc}, {"dst", flow.EthDst}}},
	{"ipv4", []datapathField{{"src", flow.IPSrc}, {"dst", flow.IPDst}, {"tos", flow.IPTOS}, {"ttl", flow.IPTTL}}},
	{"ipv6", []datapathField{{"src", flow.IPv6Src}, {"dst", flow.IPv6Dst}, {"label", flow.IPv6Label}, {"tclass", flow.IPTOS}, {"hlimit", flow.IPTTL}}},
	{"arp", []datapathField{{"sip", flow.ArpSPA}, {"tip", flow.ArpTPA}, {"op", flow.ArpOp}, {"sha", flow.ArpSHA}, {"tha", flow.ArpTHA}}},
	{"tcp", []datapathField{{"src", flow.TCPSrc}, {"dst", flow.TCPDst}}},
	{"udp", []datapathField{{"src", flow.UDPSrc}, {"dst", flow.UDPDst}}},
	{"sctp", []datapathField{{"src", flow.SCTPSrc}, {"dst", flow.SCTPDst}}},
	{"icmp", []datapathField{{"type", flow.ICMPType}, {"code", flow.ICMPCode}}},
}

// headersOf are the names of the set() of a packet's headers.
func headersOf(k *flow.Key) []string {
	names := []string{"eth"}
	switch uint16(get(k, flow.EthType)) {
	case packet.EtherTypeARP, packet.EtherTypeRARP:
		return append(names, "arp")
	case packet.EtherTypeIPv4:
		names = append(names, "ipv4")
	case packet.EtherTypeIPv6:
		names = append(names, "ipv6")
	default:
		return names
	}
	switch uint8(get(k, flow.IPProto)) {
	case packet.ProtoTCP:
		return append(names, "tcp")
	case packet.ProtoUDP:
		return append(names, "udp")
	case packet.ProtoSCTP:
		return append(names, "sctp")
	case packet.ProtoICMP:
		return append(names, "icmp")
	}
	return names
}

// addSets adds the actions that change the packet from p.base to k.
func (p *pass) addSets(k *flow.Key) {
	have := headersOf(k)
	for i := range datapathSets {
		if slices.Contains(have, datapathSets[i].of) {
			p.addSet(&datapathSets[i], k)
		}
	}
	p.addVLAN(k)
	if mark := k.PktMark(); mark != p.base.PktMark() {
		p.actions = append(p.actions, fmt.Sprintf("set(skb_mark(%s))", hexText(flow.Value{Lo: uint64(mark)})))
	}
	p.base = *k
}

// addSet adds a set() of the fields that differ between p.base and k.
func (p *pass) addSet(s *datapathSet, k *flow.Key) {
	var words []string
	for _, f := range s.fields {
		field := flow.FieldByID(f.id)
		if v := field.Get(k); v != field.Get(&p.base) {
			words = append(words, f.name+"="+datapathValue(f.id, k))
		}
	}
	if len(words) > 0 {
		p.actions = append(p.actions, fmt.Sprintf("set(%s(%s))", s.of, strings.Join(words, ",")))
	}
}

// datapathValue is a field's value in a set().
func datapathValue(id flow.FieldID, k *flow.Key) string {
	if id == flow.IPTOS || id == flow.IPv6Label {
		return hexText(flow.Value{Lo: get(k, id)})
	}
	_, value, _ := strings.Cut(flow.FieldText(id, k, nil), "=")
	return value
}

// addVLAN adds the actions that push, pop or change the tag.
func (p *pass) addVLAN(k *flow.Key) {
	before, now := get(&p.base, flow.VlanTCI), get(k, flow.VlanTCI)
	if before == now {
		return
	}
	if before&packet.VLANPresent != 0 {
		p.actions = append(p.actions, "pop_vlan")
	}
	if now&packet.VLANPresent != 0 {
		p.actions = append(p.actions, fmt.Sprintf("push_vlan(vid=%d,pcp=%d)", get(k, flow.VlanVID), get(k, flow.VlanPCP)))
	}
}

// addOutput adds an output.
func (p *pass) addOutput(st *telemetry.Step, n *flow.Names) {
	p.addSets(&p.key)
	if t := &st.Tunnel; t.Dst.IsValid() {
		family := "dst"
		if t.Dst.Is6() {
			family = "ipv6_dst"
		}
		p.actions = append(p.actions, fmt.Sprintf("set(tunnel(tun_id=%s,%s=%s,ttl=64,%sflags(df|key)))", hexText(flow.Value{Lo: t.ID}), family, t.Dst, geneveText(t.Options)))
	}
	name := n.Port(st.Port)
	if name == "" {
		name = fmt.Sprint(datapathNumber(st.Port))
	}
	p.actions = append(p.actions, name)
}

// geneveText is the text of a tunnel's options.
func geneveText(all packet.TunnelOptions) string {
	if all == "" {
		return ""
	}
	var b strings.Builder
	for more := true; more; {
		var class uint16
		var kind uint8
		var data packet.TunnelOptions
		if class, kind, data, all, more = packet.NextOption(all); more {
			digits := cmp.Or(strings.TrimLeft(fmt.Sprintf("%x", string(data)), "0"), "0")
			fmt.Fprintf(&b, "{class=%s,type=%s,len=%d,0x%s}", hexText(flow.Value{Lo: uint64(class)}), hexText(flow.Value{Lo: uint64(kind)}), len(data), digits)
		}
	}
	return "geneve(" + b.String() + "),"
}

// datapathNumber is a port's number in the datapath: the lower 16 bits.
func datapathNumber(port uint32) uint32 { return port & 0xffff }

// packetInReasons are the numbers of reasons of packet-ins (OpenFlow 1.5, section 7.4.1).
var packetInReasons = map[string]int{"no_match": 0, "action": 1, "": 1, "invalid_ttl": 2, "action_set": 3, "group": 4, "packet_out": 5}

// addPacketIn adds a packet-in.
func (p *pass) addPacketIn(a flow.Controller, cookie uint64) {
	p.addSets(&p.key)
	pause := 0
	if a.Pause {
		pause = 1
	}
	p.actions = append(p.actions, fmt.Sprintf(
		"userspace(pid=0,controller(reason=%d,dont_send=1,continuation=%d,recirc_id=%d,rule_cookie=%s,controller_id=%d,max_len=%d))",
		packetInReasons[a.Reason], pause, p.number, hexText(flow.Value{Lo: cookie}), a.ID, a.MaxLen))
}

// datapathCT is the text of a ct(): its zone, and the mark, label and NAT that it writes.
func datapathCT(a *flow.CT, r *conntrack.Request) string {
	var words []string
	switch {
	case a.Force:
		words = append(words, "force_commit")
	case a.Commit:
		words = append(words, "commit")
	}
	if r.Zone != 0 {
		words = append(words, fmt.Sprintf("zone=%d", r.Zone))
	}
	if r.MarkMask != 0 {
		words = append(words, fmt.Sprintf("mark=%s/%#x", hexText(flow.Value{Lo: uint64(r.Mark)}), r.MarkMask))
	}
	if r.LabelMask != (conntrack.Label{}) {
		words = append(words, fmt.Sprintf("label=%s/%s", hexText(flow.Value{Hi: r.Label.Hi, Lo: r.Label.Lo}), hexText(flow.Value{Hi: r.LabelMask.Hi, Lo: r.LabelMask.Lo})))
	}
	if a.NAT != nil {
		words = append(words, datapathNAT(a.NAT))
	}
	if len(words) == 0 {
		return "ct"
	}
	return "ct(" + strings.Join(words, ",") + ")"
}

// hexText is a number in C's format %#x: zero has no 0x.
func hexText(v flow.Value) string {
	switch {
	case v.IsZero():
		return "0"
	case v.Hi == 0:
		return fmt.Sprintf("%#x", v.Lo)
	}
	return fmt.Sprintf("%#x%016x", v.Hi, v.Lo)
}

// datapathNAT is the text of nat() with its addresses and ports.
func datapathNAT(n *flow.NAT) string {
	if n.Type == flow.NATRestore {
		return "nat"
	}
	text := natAction(&flow.CT{NAT: n})
	if n.AddrMin.Is6() && n.PortMin == 0 {
		text = strings.Replace(text, n.AddrMin.String(), "["+n.AddrMin.String()+"]", 1)
		if max := n.AddrMax; max != (netip.Addr{}) && max != n.AddrMin {
			text = strings.Replace(text, "-"+max.String(), "-["+max.String()+"]", 1)
		}
	}
	return text
}
