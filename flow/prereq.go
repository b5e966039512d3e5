package flow

import "github.com/antrail/antrail/packet"

// A prerequisite is the condition that a match must imply before a field has a meaning. tp_dst
// needs tcp, udp or sctp, and each of those needs ip or ipv6. OVS calls them prerequisites too
// (ovs-fields(7)). It refuses an entry without them, because a missing header has no value to
// match on or to write.

// Prereq names a prerequisite.
type Prereq uint8

// The prerequisites. NeedCT is a ct_state of a tracked and valid packet. NeedCTPorts adds
// ct_nw_proto.
const (
	NeedNothing Prereq = iota
	NeedVLAN
	NeedIPv4
	NeedIPv6
	NeedIP
	NeedARP
	NeedTCP
	NeedUDP
	NeedSCTP
	NeedICMP
	NeedICMPv6
	NeedND
	NeedNDSolicit
	NeedNDAdvert
	NeedCT
	NeedCT4
	NeedCT6
	NeedCTPorts
)

var prereqNames = [...]string{
	NeedNothing:   "nothing",
	NeedVLAN:      "a VLAN tag (dl_vlan=… or vlan_tci=0x1000/0x1000)",
	NeedIPv4:      "ip",
	NeedIPv6:      "ipv6",
	NeedIP:        "ip or ipv6",
	NeedARP:       "arp",
	NeedTCP:       "tcp or tcp6",
	NeedUDP:       "udp or udp6",
	NeedSCTP:      "sctp or sctp6",
	NeedICMP:      "icmp",
	NeedICMPv6:    "icmp6",
	NeedND:        "icmp6,icmp_type=135 or 136",
	NeedNDSolicit: "icmp6,icmp_type=135,icmp_code=0",
	NeedNDAdvert:  "icmp6,icmp_type=136,icmp_code=0",
	NeedCT:        "ip or ipv6 with a valid ct_state such as +est",
	NeedCT4:       "ip with a valid ct_state such as +est",
	NeedCT6:       "ipv6 with a valid ct_state such as +est",
	NeedCTPorts:   "a valid ct_state such as +est, and ct_nw_proto",
}

// String is the prerequisite as a user writes it in a match.
func (p Prereq) String() string { return prereqNames[p] }

// Protocol is a word that stands for a whole match: tcp is eth_type=0x800 and
// nw_proto=6.
type Protocol struct {
	Word    string
	EthType uint16
	IPProto int // AnyProto if the word leaves nw_proto open
}

// AnyProto is the IPProto of a word such as ip.
const AnyProto = -1

var protocols = []Protocol{
	{"ip", packet.EtherTypeIPv4, AnyProto},
	{"icmp", packet.EtherTypeIPv4, packet.ProtoICMP},
	{"tcp", packet.EtherTypeIPv4, packet.ProtoTCP},
	{"udp", packet.EtherTypeIPv4, packet.ProtoUDP},
	{"sctp", packet.EtherTypeIPv4, packet.ProtoSCTP},
	{"ipv6", packet.EtherTypeIPv6, AnyProto},
	{"ip6", packet.EtherTypeIPv6, AnyProto},
	{"icmp6", packet.EtherTypeIPv6, packet.ProtoICMPv6},
	{"tcp6", packet.EtherTypeIPv6, packet.ProtoTCP},
	{"udp6", packet.EtherTypeIPv6, packet.ProtoUDP},
	{"sctp6", packet.EtherTypeIPv6, packet.ProtoSCTP},
	{"arp", packet.EtherTypeARP, AnyProto},
	{"rarp", packet.EtherTypeRARP, AnyProto},
	{"mpls", 0x8847, AnyProto},
	{"mplsm", 0x8848, AnyProto},
}

// ProtocolByWord finds a protocol. It is nil for an unknown word.
func ProtocolByWord(word string) *Protocol {
	for i := range protocols {
		if protocols[i].Word == word {
			return &protocols[i]
		}
	}
	return nil
}

// MatchWords are the words that can begin a part of a match: fields, without their header names,
// and protocols.
func MatchWords() []string {
	words := []string{"dl_vlan", "tp_src", "tp_dst"}
	for i := range fields {
		for _, name := range []string{fields[i].Name, fields[i].Alias} {
			if name != "" {
				words = append(words, name)
			}
		}
	}
	for i := range protocols {
		words = append(words, protocols[i].Word)
	}
	return words
}

// Implies reports whether every packet that m matches fulfils p.
func (m *Match) Implies(p Prereq) bool {
	switch p {
	case NeedVLAN:
		tci := &fields[VlanTCI]
		return tci.Get(&m.Value).Lo&packet.VLANPresent != 0
	case NeedIPv4:
		return m.is(EthType, packet.EtherTypeIPv4)
	case NeedIPv6:
		return m.is(EthType, packet.EtherTypeIPv6)
	case NeedIP:
		return m.is(EthType, packet.EtherTypeIPv4) || m.is(EthType, packet.EtherTypeIPv6)
	case NeedARP:
		return m.is(EthType, packet.EtherTypeARP) || m.is(EthType, packet.EtherTypeRARP)
	case NeedTCP, NeedUDP, NeedSCTP, NeedICMP, NeedICMPv6, NeedND, NeedNDSolicit, NeedNDAdvert:
		return m.impliesTransport(p)
	case NeedCT, NeedCT4, NeedCT6, NeedCTPorts:
		return m.impliesTracked(p)
	}
	return true
}

func (m *Match) impliesTransport(p Prereq) bool {
	switch p {
	case NeedTCP:
		return m.isTransport(packet.ProtoTCP)
	case NeedUDP:
		return m.isTransport(packet.ProtoUDP)
	case NeedSCTP:
		return m.isTransport(packet.ProtoSCTP)
	case NeedICMP:
		return m.is(EthType, packet.EtherTypeIPv4) && m.is(IPProto, packet.ProtoICMP)
	}
	if !m.is(EthType, packet.EtherTypeIPv6) || !m.is(IPProto, packet.ProtoICMPv6) {
		return false
	}
	solicit, advert := m.is(ICMPv6Type, packet.ICMPv6NeighborSolicit), m.is(ICMPv6Type, packet.ICMPv6NeighborAdvert)
	switch p {
	case NeedND:
		return solicit || advert
	case NeedNDSolicit:
		return solicit && m.is(ICMPv6Code, 0)
	case NeedNDAdvert:
		return advert && m.is(ICMPv6Code, 0)
	}
	return true
}

// isTransport reports whether m selects a protocol with ports. A later fragment has none.
func (m *Match) isTransport(proto uint64) bool {
	later := fields[IPFrag].Get(&m.Value).Lo&packet.FragLater != 0
	return m.Implies(NeedIP) && m.is(IPProto, proto) && !later
}

// impliesTracked reports whether ct_state has new, est, rel or rpl set, or is tracked and not
// invalid.
func (m *Match) impliesTracked(p Prereq) bool {
	state := &fields[CTState]
	v, mask := state.Get(&m.Value).Lo, state.Get(&m.Mask).Lo
	const valid, invalid, tracked = 0x0f, 0x10, 0x20
	if v&valid == 0 && (v&tracked == 0 || mask&invalid == 0 || v&invalid != 0) {
		return false
	}
	switch p {
	case NeedCT4:
		return m.is(EthType, packet.EtherTypeIPv4)
	case NeedCT6:
		return m.is(EthType, packet.EtherTypeIPv6)
	case NeedCTPorts:
		return m.Implies(NeedIP) && fields[CTNwProto].Get(&m.Mask).Lo != 0
	}
	return m.Implies(NeedIP)
}

// is reports whether m matches exactly v in a whole field.
func (m *Match) is(id FieldID, v uint64) bool {
	f := &fields[id]
	if f.Size <= 8 {
		return f.low(&m.Mask) == 1<<f.Bits-1 && f.low(&m.Value) == v
	}
	return f.Get(&m.Mask) == Ones(f.Bits) && f.Get(&m.Value) == Value{Lo: v}
}
