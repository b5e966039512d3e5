package flow

// FieldID names a field of the registry.
type FieldID uint8

// The fields. Reg0+i is register i; XReg0+i and XXReg0+i are its 64-bit and
// 128-bit unions.
const (
	FieldNone FieldID = iota
	Reg0
	_reg1
	_reg2
	_reg3
	_reg4
	_reg5
	_reg6
	_reg7
	_reg8
	_reg9
	_reg10
	_reg11
	_reg12
	_reg13
	_reg14
	_reg15
	XReg0
	_xreg1
	_xreg2
	_xreg3
	_xreg4
	_xreg5
	_xreg6
	_xreg7
	XXReg0
	_xxreg1
	_xxreg2
	_xxreg3
	ConjID
	Metadata
	InPort
	PktMark
	CTState
	CTZone
	CTMark
	CTLabel
	CTNwProto
	CTNwSrc
	CTNwDst
	CTIPv6Src
	CTIPv6Dst
	CTTpSrc
	CTTpDst
	TunID
	TunSrc
	TunDst
	TunIPv6Src
	TunIPv6Dst
	TunFlags
	TunTTL
	TunTOS
	EthSrc
	EthDst
	EthType
	VlanTCI
	VlanVID
	VlanPCP
	IPSrc
	IPDst
	IPv6Src
	IPv6Dst
	IPv6Label
	IPProto
	IPTOS  // the whole TOS byte; text nw_tos shows its DSCP bits
	IPDSCP // 6 bits
	IPECN
	IPTTL
	IPFrag
	ArpOp
	ArpSPA
	ArpTPA
	ArpSHA
	ArpTHA
	TCPSrc
	TCPDst
	TCPFlags
	UDPSrc
	UDPDst
	SCTPSrc
	SCTPDst
	ICMPType
	ICMPCode
	ICMPv6Type
	ICMPv6Code
	NDTarget
	NDSLL
	NDTLL
	numFields
)

// Field is one row of the registry: all that parser, printer, matcher,
// set_field and trace know about a field.
type Field struct {
	ID   FieldID
	Name string // in set_field and modern matches: eth_dst, reg0, ip_dst
	NXM  string // in move, load, learn and output: NXM_OF_ETH_DST
	Off  int    // first byte in the Key
	Size int    // bytes in the Key that hold it
	Lsb  int    // bits below it in those bytes (big endian)
	Bits int    // width
}

// Get reads the field from a key.
func (f *Field) Get(k *Key) Value {
	var v Value
	for _, b := range k[f.Off : f.Off+f.Size] {
		v = v.Shl(8)
		v.Lo |= uint64(b)
	}
	return v.Shr(f.Lsb).And(Ones(f.Bits))
}

// Put writes v's bits under mask into a key; other bits stay.
func (f *Field) Put(k *Key, v, mask Value) {
	mask = mask.And(Ones(f.Bits)).Shl(f.Lsb)
	v = v.Shl(f.Lsb).And(mask)
	for i := f.Off + f.Size - 1; i >= f.Off; i-- {
		k[i] = k[i]&^byte(mask.Lo) | byte(v.Lo)
		v, mask = v.Shr(8), mask.Shr(8)
	}
}

// FieldByID is the registry row of a field.
func FieldByID(id FieldID) *Field { return &fields[id] }

// Get reads a subfield from a key, right aligned.
func (s Subfield) Get(k *Key) Value {
	return fields[s.Field].Get(k).Shr(int(s.Ofs)).And(Ones(int(s.N)))
}

// Put writes the low bits of v into a subfield of a key.
func (s Subfield) Put(k *Key, v Value) {
	fields[s.Field].Put(k, v.Shl(int(s.Ofs)), Ones(int(s.N)).Shl(int(s.Ofs)))
}

var fields = makeFields()

func makeFields() (t [numFields]Field) {
	add := func(id FieldID, name, nxm string, off, size, lsb, bits int) {
		t[id] = Field{id, name, nxm, off, size, lsb, bits}
	}
	digits := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"}
	for i, d := range digits {
		add(Reg0+FieldID(i), "reg"+d, "NXM_NX_REG"+d, offReg+4*i, 4, 0, 32)
	}
	for i, d := range digits[:8] {
		add(XReg0+FieldID(i), "xreg"+d, "OXM_OF_PKT_REG"+d, offReg+8*i, 8, 0, 64)
	}
	for i, d := range digits[:4] {
		add(XXReg0+FieldID(i), "xxreg"+d, "NXM_NX_XXREG"+d, offReg+16*i, 16, 0, 128)
	}
	add(ConjID, "conj_id", "NXM_NX_CONJ_ID", offConjID, 4, 0, 32)
	add(Metadata, "metadata", "OXM_OF_METADATA", offMetadata, 8, 0, 64)
	add(InPort, "in_port", "NXM_OF_IN_PORT", offInPort, 4, 0, 32)
	add(PktMark, "pkt_mark", "NXM_NX_PKT_MARK", offPktMark, 4, 0, 32)
	add(CTState, "ct_state", "NXM_NX_CT_STATE", offCTState, 4, 0, 32)
	add(CTZone, "ct_zone", "NXM_NX_CT_ZONE", offCTZone, 2, 0, 16)
	add(CTMark, "ct_mark", "NXM_NX_CT_MARK", offCTMark, 4, 0, 32)
	add(CTLabel, "ct_label", "NXM_NX_CT_LABEL", offCTLabel, 16, 0, 128)
	add(CTNwProto, "ct_nw_proto", "NXM_NX_CT_NW_PROTO", offCTNwProto, 1, 0, 8)
	add(CTNwSrc, "ct_nw_src", "NXM_NX_CT_NW_SRC", offCTNwSrc, 4, 0, 32)
	add(CTNwDst, "ct_nw_dst", "NXM_NX_CT_NW_DST", offCTNwDst, 4, 0, 32)
	add(CTIPv6Src, "ct_ipv6_src", "NXM_NX_CT_IPV6_SRC", offCTSrc6, 16, 0, 128)
	add(CTIPv6Dst, "ct_ipv6_dst", "NXM_NX_CT_IPV6_DST", offCTDst6, 16, 0, 128)
	add(CTTpSrc, "ct_tp_src", "NXM_NX_CT_TP_SRC", offCTTpSrc, 2, 0, 16)
	add(CTTpDst, "ct_tp_dst", "NXM_NX_CT_TP_DST", offCTTpDst, 2, 0, 16)
	add(TunID, "tun_id", "NXM_NX_TUN_ID", offTunID, 8, 0, 64)
	add(TunSrc, "tun_src", "NXM_NX_TUN_IPV4_SRC", offTunSrc, 4, 0, 32)
	add(TunDst, "tun_dst", "NXM_NX_TUN_IPV4_DST", offTunDst, 4, 0, 32)
	add(TunIPv6Src, "tun_ipv6_src", "NXM_NX_TUN_IPV6_SRC", offTunSrc6, 16, 0, 128)
	add(TunIPv6Dst, "tun_ipv6_dst", "NXM_NX_TUN_IPV6_DST", offTunDst6, 16, 0, 128)
	add(TunFlags, "tun_flags", "NXM_NX_TUN_FLAGS", offTunFlags, 2, 0, 16)
	add(TunTTL, "tun_ttl", "", offTunTTL, 1, 0, 8)
	add(TunTOS, "tun_tos", "", offTunTOS, 1, 0, 8)
	add(EthSrc, "eth_src", "NXM_OF_ETH_SRC", offEthSrc, 6, 0, 48)
	add(EthDst, "eth_dst", "NXM_OF_ETH_DST", offEthDst, 6, 0, 48)
	add(EthType, "eth_type", "NXM_OF_ETH_TYPE", offEthType, 2, 0, 16)
	add(VlanTCI, "vlan_tci", "NXM_OF_VLAN_TCI", offVlanTCI, 2, 0, 16)
	add(VlanVID, "vlan_vid", "OXM_OF_VLAN_VID", offVlanTCI, 2, 0, 12)
	add(VlanPCP, "vlan_pcp", "OXM_OF_VLAN_PCP", offVlanTCI, 2, 13, 3)
	add(IPSrc, "ip_src", "NXM_OF_IP_SRC", offNwSrc, 4, 0, 32)
	add(IPDst, "ip_dst", "NXM_OF_IP_DST", offNwDst, 4, 0, 32)
	add(IPv6Src, "ipv6_src", "NXM_NX_IPV6_SRC", offIPv6Src, 16, 0, 128)
	add(IPv6Dst, "ipv6_dst", "NXM_NX_IPV6_DST", offIPv6Dst, 16, 0, 128)
	add(IPv6Label, "ipv6_label", "NXM_NX_IPV6_LABEL", offIPv6Label, 4, 0, 20)
	add(IPProto, "nw_proto", "NXM_OF_IP_PROTO", offNwProto, 1, 0, 8)
	add(IPTOS, "nw_tos", "NXM_OF_IP_TOS", offNwTOS, 1, 0, 8)
	add(IPDSCP, "ip_dscp", "OXM_OF_IP_DSCP", offNwTOS, 1, 2, 6)
	add(IPECN, "nw_ecn", "NXM_NX_IP_ECN", offNwTOS, 1, 0, 2)
	add(IPTTL, "nw_ttl", "NXM_NX_IP_TTL", offNwTTL, 1, 0, 8)
	add(IPFrag, "ip_frag", "NXM_NX_IP_FRAG", offNwFrag, 1, 0, 2)
	add(ArpOp, "arp_op", "NXM_OF_ARP_OP", offArpOp, 2, 0, 16)
	add(ArpSPA, "arp_spa", "NXM_OF_ARP_SPA", offNwSrc, 4, 0, 32)
	add(ArpTPA, "arp_tpa", "NXM_OF_ARP_TPA", offNwDst, 4, 0, 32)
	add(ArpSHA, "arp_sha", "NXM_NX_ARP_SHA", offArpSHA, 6, 0, 48)
	add(ArpTHA, "arp_tha", "NXM_NX_ARP_THA", offArpTHA, 6, 0, 48)
	add(TCPSrc, "tcp_src", "NXM_OF_TCP_SRC", offTpSrc, 2, 0, 16)
	add(TCPDst, "tcp_dst", "NXM_OF_TCP_DST", offTpDst, 2, 0, 16)
	add(TCPFlags, "tcp_flags", "NXM_NX_TCP_FLAGS", offTCPFlags, 2, 0, 12)
	add(UDPSrc, "udp_src", "NXM_OF_UDP_SRC", offTpSrc, 2, 0, 16)
	add(UDPDst, "udp_dst", "NXM_OF_UDP_DST", offTpDst, 2, 0, 16)
	add(SCTPSrc, "sctp_src", "OXM_OF_SCTP_SRC", offTpSrc, 2, 0, 16)
	add(SCTPDst, "sctp_dst", "OXM_OF_SCTP_DST", offTpDst, 2, 0, 16)
	add(ICMPType, "icmp_type", "NXM_OF_ICMP_TYPE", offTpSrc+1, 1, 0, 8)
	add(ICMPCode, "icmp_code", "NXM_OF_ICMP_CODE", offTpDst+1, 1, 0, 8)
	add(ICMPv6Type, "icmpv6_type", "NXM_NX_ICMPV6_TYPE", offTpSrc+1, 1, 0, 8)
	add(ICMPv6Code, "icmpv6_code", "NXM_NX_ICMPV6_CODE", offTpDst+1, 1, 0, 8)
	add(NDTarget, "nd_target", "NXM_NX_ND_TARGET", offNDTarget, 16, 0, 128)
	add(NDSLL, "nd_sll", "NXM_NX_ND_SLL", offArpSHA, 6, 0, 48)
	add(NDTLL, "nd_tll", "NXM_NX_ND_TLL", offArpTHA, 6, 0, 48)
	return t
}
