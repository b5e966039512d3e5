package parse

import (
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/packet"
)

// Matches are written in any order, as add-flows accepts them. They are read in
// stages: protocol words and eth_type, then nw_proto, then all other fields. So
// tp_dst, nw_src and icmp_type find their protocol.

// Match reads a match such as tcp,in_port="web",nw_dst=10.96.0.0/12. It refuses
// priority, table and other settings.
func Match(text string, n *flow.Names) (flow.Match, error) {
	p := &parser{names: n}
	var items []matchItem
	if err := checkLength(span{text, 0}); err != nil {
		return flow.Match{}, err
	}
	err := each(span{text, 0}, func(it item) error {
		items = append(items, staged(it))
		return nil
	})
	if err != nil {
		return flow.Match{}, err
	}
	var m flow.Match
	if err := p.readMatch(&m, items); err != nil {
		return flow.Match{}, err
	}
	return m, nil
}

// readMatch reads items into an empty match.
func (p *parser) readMatch(m *flow.Match, items []matchItem) error {
	b := matchBuilder{p: p, m: m}
	p.needs = p.needs[:0]
	for stage := range matchStages {
		for i := range items {
			if items[i].stage != stage {
				continue
			}
			if err := b.addItem(items[i].item, items[i].proto); err != nil {
				return err
			}
		}
	}
	return b.checkPrereqs()
}

// matchItem is an item of a match. It has the protocol of its key (nil for none)
// and the stage in which it is read, from 0.
type matchItem struct {
	item
	proto *flow.Protocol
	stage int
}

// matchStages is the number of stages.
const matchStages = 3

// staged finds the stage of an item.
func staged(it item) matchItem {
	m := matchItem{it, flow.ProtocolByWord(it.key.text), matchStages - 1}
	switch it.key.text {
	case "eth_type", "dl_type":
		m.stage = 0
	case "nw_proto", "ip_proto":
		m.stage = 1
	}
	if it.sep == 0 && m.proto != nil {
		m.stage = 0
	}
	return m
}

// matchBuilder collects a match.
type matchBuilder struct {
	p    *parser // with the needs so far
	m    *flow.Match
	seen [flow.NumFields]bool
}

// need is a field whose prerequisite is checked after the match is complete.
type need struct {
	f  *flow.Field
	at span
}

func (b *matchBuilder) addItem(it item, proto *flow.Protocol) error {
	if proto != nil {
		return b.addProtocol(it, proto)
	}
	if it.sep == '(' {
		return it.key.errorf("unknown field %q", it.key.text)
	}
	name := it.key.text
	if name == "dl_vlan" || name == "dl_vlan_pcp" || name == "vlan_vid" || name == "vlan_pcp" {
		return b.addVLAN(it)
	}
	f := flow.FieldByName(b.fieldName(name))
	if f == nil || f.NXM == name || f.OXM == name {
		return it.key.errorf("unknown field %q%s", name, flow.Suggest(name, flow.MatchWords()))
	}
	if f.NXM == "" {
		return it.key.errorf("%s cannot be matched on", name)
	}
	if it.sep == 0 && flow.IsTunMetadata(f.ID) { // the option must be present
		return b.addField(it.key, f, flow.Value{}, flow.Value{})
	}
	if it.sep == 0 {
		return it.key.errorf("%s needs a value, as in %s=…", name, name)
	}
	v, mask, err := b.p.value(f, it.value)
	if err != nil {
		return err
	}
	b.p.needs = append(b.p.needs, need{f, it.key})
	return b.addField(it.key, f, v, mask)
}

// addProtocol adds the fields of a protocol word.
func (b *matchBuilder) addProtocol(it item, proto *flow.Protocol) error {
	if err := it.bare(); err != nil {
		return err
	}
	if err := b.addField(it.key, flow.FieldByID(flow.EthType), flow.Value{Lo: uint64(proto.EthType)}, flow.Ones(16)); err != nil {
		return err
	}
	if proto.IPProto == flow.AnyProto {
		return nil
	}
	return b.addField(it.key, flow.FieldByID(flow.IPProto), flow.Value{Lo: uint64(proto.IPProto)}, flow.Ones(8))
}

// addField adds a field's value. A field may come twice only with the same value.
func (b *matchBuilder) addField(at span, f *flow.Field, v, mask flow.Value) error {
	switch f.ID {
	case flow.IPTOS: // ECN has its own field, nw_ecn
		v, mask = v.And(flow.Value{Lo: 0xfc}), flow.Value{Lo: 0xfc}
	case flow.VlanTCI:
		if v.IsZero() && mask == flow.Ones(16) { // no tag has neither VID nor PCP
			mask = flow.Value{Lo: 0x1fff}
		}
	}
	v = v.And(mask)
	if b.seen[f.ID] {
		if have, haveMask := b.m.Get(f.ID); have != v || haveMask != mask {
			return at.errorf("%s contradicts what the match says before", at.text)
		}
		return nil
	}
	if have, haveMask := b.m.Get(f.ID); have.And(mask) != v.And(haveMask) {
		return at.errorf("%s contradicts what the match says before", at.text)
	}
	b.seen[f.ID] = true
	b.m.Add(f.ID, v, mask)
	return nil
}

// addVLAN adds the fields of a VLAN tag whose names are not simply bits of
// vlan_tci. All of them imply a tag, except dl_vlan=0xffff (no tag, OpenFlow 1.0)
// and a vlan_vid without 0x1000.
func (b *matchBuilder) addVLAN(it item) error {
	if it.sep != '=' && it.sep != ':' {
		return it.key.errorf("%s needs a value, as in %s=5", it.key.text, it.key.text)
	}
	var tci, mask uint64
	var err error
	switch it.key.text {
	case "dl_vlan":
		tci, mask, err = dlVLAN(it.value)
	case "vlan_vid":
		tci, mask, err = vlanVID(it.value)
	default:
		tci, err = number[uint64](it.value, 7)
		tci, mask = tci<<13|packet.VLANPresent, 0xf000
	}
	if err != nil {
		return err
	}
	have, haveMask := b.m.Get(flow.VlanTCI)
	if both := haveMask.Lo & mask; have.Lo&both != tci&both {
		return it.key.errorf("%s contradicts what the match says before", it.key.text)
	}
	b.m.Add(flow.VlanTCI, flow.Value{Lo: tci & mask}, flow.Value{Lo: mask})
	return nil
}

func dlVLAN(s span) (tci, mask uint64, err error) {
	v, err := number[uint64](s, 0xffff)
	switch {
	case err != nil:
		return 0, 0, err
	case v == 0xffff:
		return 0, 0x1fff, nil
	case v > 0xfff:
		return 0, 0, s.errorf("%s is too large; VLANs are 0 to 4095, and 0xffff means no tag", s.text)
	}
	return v | packet.VLANPresent, 0x1fff, nil
}

func vlanVID(s span) (tci, mask uint64, err error) {
	text, maskText, hasMask := s.cut("/")
	if tci, err = number[uint64](text, 0x1fff); err != nil {
		return 0, 0, err
	}
	mask = 0x1fff
	if hasMask {
		mask, err = number[uint64](maskText, 0x1fff)
	}
	return tci, mask, err
}

// fieldName finds the field of a name that several protocols use.
func (b *matchBuilder) fieldName(name string) string {
	arp := b.m.Implies(flow.NeedARP)
	switch name {
	case "nw_src", "ip_src", "nw_dst", "ip_dst":
		if arp {
			return map[byte]string{'s': "arp_spa", 'd': "arp_tpa"}[name[3]]
		}
	case "nw_proto", "ip_proto":
		if arp {
			return "arp_op"
		}
	case "tp_src", "tp_dst":
		return b.portName(name[3:])
	case "icmp_type", "icmp_code":
		if b.m.Implies(flow.NeedICMPv6) {
			return "icmpv6" + name[4:]
		}
	}
	return name
}

// portName is the field of tp_src or tp_dst; side is "src" or "dst".
func (b *matchBuilder) portName(side string) string {
	tcp := "tcp_src"
	if side == "dst" {
		tcp = "tcp_dst"
	}
	proto, mask := b.m.Get(flow.IPProto)
	if mask.IsZero() || proto.Lo == packet.ProtoTCP {
		return tcp
	}
	switch proto.Lo {
	case packet.ProtoUDP:
		return "udp_" + side
	case packet.ProtoSCTP:
		return "sctp_" + side
	case packet.ProtoICMP, packet.ProtoICMPv6:
		kind := map[string]string{"src": "type", "dst": "code"}[side]
		if proto.Lo == packet.ProtoICMP {
			return "icmp_" + kind
		}
		return "icmpv6_" + kind
	}
	return tcp
}

// checkPrereqs refuses fields without a meaning for the packets that the match
// selects.
func (b *matchBuilder) checkPrereqs() error {
	for _, n := range b.p.needs {
		if need := n.f.Need; !b.m.Implies(need) {
			return n.at.errorf("%s needs %s in the match", n.at.text, need)
		}
	}
	return nil
}
