package flow

import (
	"strconv"

	"github.com/antrail/antrail/packet"
)

// The match printer. It prints in ovs-ofctl's order: marks and conntrack fields, the protocol
// word, registers, tunnel, metadata, in_port, Ethernet, IP, transport. A protocol word stands for
// eth_type and nw_proto. nw_src, tp_dst … are written for any protocol.

// String is the match as ovs-ofctl prints it, with numbers for ports. It is empty for a match on
// everything.
func (m *Match) String() string { return m.Text(nil) }

// Text is the match as ovs-ofctl prints it, with the names in n.
func (m *Match) Text(n *Names) string { return string(m.AppendText(nil, n)) }

// AppendText appends Text to b.
func (m *Match) AppendText(b []byte, n *Names) []byte {
	p := matchPrinter{m: *m, names: n, b: b, start: len(b)}
	return p.print()
}

// matchPrinter appends the parts of a match, separated by commas. It holds the match itself,
// because a pointer would put every printed match on the heap.
type matchPrinter struct {
	m     Match
	names *Names
	b     []byte
	start int    // where the match begins in b
	words uint64 // a bit for each nonzero word of the mask
}

// print appends all parts.
func (p *matchPrinter) print() []byte {
	for i := range KeyWords {
		if p.m.Mask.Word(i) != 0 {
			p.words |= 1 << i
		}
	}
	p.metadata()
	skipType, skipProto := p.protocol()
	p.registers()
	p.ethernet(skipType)
	p.network(skipProto)
	p.transport()
	return p.b
}

// open begins a part.
func (p *matchPrinter) open(name string) {
	if len(p.b) > p.start {
		p.b = append(p.b, ',')
	}
	p.b = append(p.b, name...)
}

// get is Match.Get. It is cheap for most of 90 fields, because the match does not use them.
func (p *matchPrinter) get(id FieldID) (value, mask Value) {
	if p.words&fieldWords[id] == 0 {
		return Value{}, Value{}
	}
	return p.m.Get(id)
}

// field writes name=value, or name=value/mask, if the match uses the field.
func (p *matchPrinter) field(id FieldID, name string) {
	v, mask := p.get(id)
	if mask.IsZero() {
		return
	}
	f := &fields[id]
	p.open(name)
	p.b = append(p.b, '=')
	if f.Form == Decimal && mask != Ones(f.Bits) {
		p.b = append(appendPlainHex(p.b, v.Lo), '/')
		p.b = appendPlainHex(p.b, mask.Lo)
		return
	}
	p.b = appendMasked(p.b, f, v, mask, p.names)
}

func (p *matchPrinter) fields(ids ...FieldID) {
	for _, id := range ids {
		p.field(id, fields[id].Name)
	}
}

// metadata writes the part before the protocol word.
func (p *matchPrinter) metadata() {
	p.fields(PktMark, ConjID)
	p.flags(CTState)
	if v, mask := p.get(CTZone); !mask.IsZero() {
		p.number("ct_zone", v.Lo)
	}
	p.fields(CTMark, CTLabel, CTNwSrc, CTIPv6Src, CTNwDst, CTIPv6Dst, CTNwProto, CTTpSrc, CTTpDst)
}

func (p *matchPrinter) number(name string, v uint64) {
	p.open(name)
	p.b = append(p.b, '=')
	p.b = strconv.AppendUint(p.b, v, 10)
}

// flags writes ct_state=+new-est, or ct_state=new|trk if the mask has every bit.
func (p *matchPrinter) flags(id FieldID) {
	v, mask := p.get(id)
	if mask.IsZero() {
		return
	}
	f := &fields[id]
	p.open(f.Name)
	p.b = append(p.b, '=')
	all := Ones(len(flagWords[f.Form])).Lo
	if mask.Lo&all == all && id != TunFlags {
		p.b = appendFlags(p.b, f.Form, v.Lo)
		return
	}
	p.b = appendFlagsMasked(p.b, f.Form, v.Lo, mask.Lo)
}

// protocol writes the protocol word. It returns whether the word stands for eth_type and
// nw_proto.
func (p *matchPrinter) protocol() (skipType, skipProto bool) {
	if _, mask := p.m.Get(EthType); mask.IsZero() {
		return true, false
	}
	word := ""
	for _, w := range protocols {
		if !p.m.is(EthType, uint64(w.EthType)) || w.Word == "ip6" {
			continue
		}
		if w.IPProto == AnyProto && word == "" {
			word = w.Word
		} else if w.IPProto != AnyProto && p.m.is(IPProto, uint64(w.IPProto)) {
			word, skipProto = w.Word, true
		}
	}
	if word != "" {
		p.open(word)
	}
	return word != "", skipProto
}

// registers writes the part between the protocol word and the Ethernet header.
func (p *matchPrinter) registers() {
	for id := Reg0; id < XReg0; id++ {
		p.fields(id)
	}
	p.fields(TunID, TunSrc, TunDst, TunIPv6Src, TunIPv6Dst, TunTOS, TunTTL)
	p.flags(TunFlags)
	p.tunMetadata()
	p.fields(Metadata)
	if v, mask := p.get(InPort); !mask.IsZero() {
		p.open("in_port=")
		p.b = appendPort(p.b, PortOf16(uint32(v.Lo)), p.names)
	}
}

// tunMetadata writes Geneve options: tun_metadata0=0x5, tun_metadata0 alone for any value, and
// tun_metadata0=NP if the option must be missing.
func (p *matchPrinter) tunMetadata() {
	has, mask := p.get(TunPresent)
	for i := range FieldID(TunMetadataFields) {
		f := &fields[TunMetadata0+i]
		switch _, asks := p.get(f.ID); {
		case !asks.IsZero():
			p.field(f.ID, f.Name)
		case mask.Lo>>i&1 == 0:
		case has.Lo>>i&1 == 0:
			p.open(f.Name + "=NP")
		default:
			p.open(f.Name)
		}
	}
}

func (p *matchPrinter) ethernet(skipType bool) {
	p.vlan()
	p.field(EthSrc, "dl_src")
	p.field(EthDst, "dl_dst")
	if !skipType {
		v, _ := p.m.Get(EthType)
		p.padded("dl_type", v.Lo, 4)
	}
}

// padded writes name=0x0800.
func (p *matchPrinter) padded(name string, v uint64, digits int) {
	p.open(name)
	p.b = append(p.b, "=0x"...)
	p.b = appendPadded(p.b, v, digits)
}

// paddedMasked writes name=0x0800/0xff00, with the mask only if it leaves bits out.
func (p *matchPrinter) paddedMasked(id FieldID, name string, digits int) {
	v, mask := p.get(id)
	if mask.IsZero() {
		return
	}
	p.padded(name, v.Lo, digits)
	if mask != Ones(fields[id].Bits) {
		p.b = append(p.b, "/0x"...)
		p.b = appendPadded(p.b, mask.Lo, digits)
	}
}

// vlan writes dl_vlan and dl_vlan_pcp if the match has these whole fields; otherwise vlan_tci.
func (p *matchPrinter) vlan() {
	v, mask := p.get(VlanTCI)
	const vid, pcp = 0x0fff, 0xe000
	vidMask, pcpMask := mask.Lo&vid, mask.Lo&pcp
	whole := (vidMask == 0 || vidMask == vid) && (pcpMask == 0 || pcpMask == pcp) && vidMask|pcpMask != 0
	if mask.Lo&v.Lo&packet.VLANPresent == 0 || !whole {
		p.paddedMasked(VlanTCI, "vlan_tci", 4)
		return
	}
	if vidMask != 0 {
		p.number("dl_vlan", v.Lo&vid)
	}
	if pcpMask != 0 {
		p.number("dl_vlan_pcp", v.Lo>>13)
	}
}

func (p *matchPrinter) network(skipProto bool) {
	arp := p.m.Implies(NeedARP)
	switch {
	case p.m.Implies(NeedIPv6):
		p.fields(IPv6Src, IPv6Dst)
		p.paddedMasked(IPv6Label, "ipv6_label", 5)
	case arp:
		p.fields(ArpSPA, ArpTPA, ArpOp, ArpSHA, ArpTHA)
	default:
		p.field(IPSrc, "nw_src")
		p.field(IPDst, "nw_dst")
	}
	if !skipProto && !arp {
		p.fields(IPProto)
	}
	p.tos()
	p.fields(IPTTL)
	if v, mask := p.get(IPFrag); !mask.IsZero() {
		p.open("nw_frag=")
		p.b = appendFragment(p.b, v.Lo, mask.Lo)
	}
}

// tos writes DSCP in place as nw_tos, and nw_ecn.
func (p *matchPrinter) tos() {
	if v, mask := p.get(IPDSCP); !mask.IsZero() {
		p.number("nw_tos", v.Lo<<2)
	}
	if v, mask := p.get(IPECN); !mask.IsZero() {
		p.number("nw_ecn", v.Lo)
	}
}

func (p *matchPrinter) transport() {
	switch {
	case p.m.Implies(NeedICMP), p.m.Implies(NeedICMPv6):
		p.fields(ICMPType)
		p.fields(ICMPCode)
		p.fields(NDTarget)
		if p.m.Implies(NeedICMPv6) {
			p.fields(NDSLL, NDTLL)
		}
	default:
		p.field(TCPSrc, "tp_src")
		p.field(TCPDst, "tp_dst")
	}
	if p.m.is(IPProto, packet.ProtoTCP) {
		p.flags(TCPFlags)
	}
}
