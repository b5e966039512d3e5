package flow

// Matches are read in any order, as add-flows takes them: protocol words and
// eth_type first, then nw_proto, then all other fields, so that tp_dst,
// nw_src and icmp_type find out which protocol's they are.

// ParseMatch reads a match such as tcp,in_port="web",nw_dst=10.96.0.0/12.
// Priority, table and the like are no part of it.
func ParseMatch(text string, n *Names) (Match, error) {
	p := &parser{names: n}
	var items []matchItem
	if err := checkLength(span{text, 0}); err != nil {
		return Match{}, err
	}
	err := each(span{text, 0}, func(it item) error {
		items = append(items, staged(it))
		return nil
	})
	if err != nil {
		return Match{}, err
	}
	var m Match
	if err := p.readMatch(&m, items); err != nil {
		return Match{}, err
	}
	return m, nil
}

// readMatch builds a match, which is empty, from its items.
func (p *parser) readMatch(m *Match, items []matchItem) error {
	b := matchBuilder{p: p, m: m}
	p.needs = p.needs[:0]
	for stage := range matchStages {
		for i := range items {
			if items[i].stage != stage {
				continue
			}
			if err := b.add(items[i].item, items[i].proto); err != nil {
				return err
			}
		}
	}
	return b.checkPrereqs()
}

// matchItem is an item of a match, with the protocol that its key names, nil for
// none, and the stage in which it is read, from 0.
type matchItem struct {
	item
	proto *protocol
	stage int
}

// matchStages is how many stages a match is read in.
const matchStages = 3

// staged finds the stage of an item.
func staged(it item) matchItem {
	m := matchItem{it, protocolByWord(it.key.text), matchStages - 1}
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
	m    *Match
	seen [numFields]bool
}

// need is a field whose prerequisite is checked when the match is complete.
type need struct {
	f  *Field
	at span
}

func (b *matchBuilder) add(it item, proto *protocol) error {
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
	f := fieldNames[b.fieldName(name)]
	if f == nil || f.NXM == name || f.OXM == name {
		return it.key.errorf("unknown field %q%s", name, Suggest(name, matchNames()))
	}
	if f.NXM == "" {
		return it.key.errorf("%s cannot be matched on", name)
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

// addProtocol adds what a protocol word stands for.
func (b *matchBuilder) addProtocol(it item, proto *protocol) error {
	if err := it.bare(); err != nil {
		return err
	}
	if err := b.addField(it.key, &fields[EthType], Value{Lo: uint64(proto.ethType)}, Ones(16)); err != nil {
		return err
	}
	if proto.proto == anyProto {
		return nil
	}
	return b.addField(it.key, &fields[IPProto], Value{Lo: uint64(proto.proto)}, Ones(8))
}

// addField adds a field's value. A field may come twice only with the same
// value.
func (b *matchBuilder) addField(at span, f *Field, v, mask Value) error {
	switch f.ID {
	case IPTOS: // ECN is nw_ecn's
		v, mask = v.And(Value{Lo: 0xfc}), Value{Lo: 0xfc}
	case VlanTCI:
		if v.IsZero() && mask == Ones(16) { // no tag has neither VID nor PCP
			mask = Value{Lo: 0x1fff}
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

// addVLAN adds the fields of a VLAN tag under the names that are not simply
// bits of vlan_tci: all of them say that there is a tag, but for dl_vlan=0xffff
// (no tag, OpenFlow 1.0) and a vlan_vid without 0x1000.
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
		tci, err = number(it.value, 7)
		tci, mask = tci<<13|vlanPresent, 0xf000
	}
	if err != nil {
		return err
	}
	have, haveMask := b.m.Get(VlanTCI)
	if both := haveMask.Lo & mask; have.Lo&both != tci&both {
		return it.key.errorf("%s contradicts what the match says before", it.key.text)
	}
	b.m.Add(VlanTCI, Value{Lo: tci & mask}, Value{Lo: mask})
	return nil
}

func dlVLAN(s span) (tci, mask uint64, err error) {
	v, err := number(s, 0xffff)
	switch {
	case err != nil:
		return 0, 0, err
	case v == 0xffff:
		return 0, 0x1fff, nil
	case v > 0xfff:
		return 0, 0, s.errorf("%s is too large; VLANs are 0 to 4095, and 0xffff means no tag", s.text)
	}
	return v | vlanPresent, 0x1fff, nil
}

func vlanVID(s span) (tci, mask uint64, err error) {
	text, maskText, hasMask := s.cut("/")
	if tci, err = number(text, 0x1fff); err != nil {
		return 0, 0, err
	}
	mask = 0x1fff
	if hasMask {
		mask, err = number(maskText, 0x1fff)
	}
	return tci, mask, err
}

// fieldName finds out which protocol's a field is.
func (b *matchBuilder) fieldName(name string) string {
	arp := b.m.Implies(NeedARP)
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
		if b.m.Implies(NeedICMPv6) {
			return "icmpv6" + name[4:]
		}
	}
	return name
}

// portName is the field behind tp_src or tp_dst; side is "src" or "dst".
func (b *matchBuilder) portName(side string) string {
	proto, mask := b.m.Get(IPProto)
	if mask.IsZero() {
		return "tcp_" + side
	}
	switch proto.Lo {
	case protoUDP:
		return "udp_" + side
	case protoSCTP:
		return "sctp_" + side
	case protoICMP, protoICMPv6:
		kind := map[string]string{"src": "type", "dst": "code"}[side]
		if proto.Lo == protoICMP {
			return "icmp_" + kind
		}
		return "icmpv6_" + kind
	}
	return "tcp_" + side
}

// checkPrereqs refuses fields that have no meaning for what the match selects.
func (b *matchBuilder) checkPrereqs() error {
	for _, n := range b.p.needs {
		if need := n.f.Need; !b.m.Implies(need) {
			return n.at.errorf("%s needs %s in the match", n.at.text, need)
		}
	}
	return nil
}

// matchNames are all words of a match, for suggestions.
func matchNames() []string {
	names := []string{"dl_vlan", "tp_src", "tp_dst"}
	for i := range fields {
		for _, n := range []string{fields[i].Name, fields[i].Alias} {
			if n != "" {
				names = append(names, n)
			}
		}
	}
	for _, w := range protocols {
		names = append(names, w.word)
	}
	return names
}
