package flow

import (
	"strconv"
	"strings"
)

// at is a field's place: first byte in the Key, bytes, bits below it, width.
type at struct{ off, size, lsb, bits int }

// trait is a permission for a field.
type trait uint8

const (
	masked   trait = 1 << iota // a mask is allowed
	readOnly                   // no action may write it
)

// row describes a field: its names with the preferred one first, its header names likewise, and
// the rest of Field.
type row struct {
	id           FieldID
	names, heads string
	place        at
	form         Form
	traits       trait
	need         Prereq
}

// metadata are the fields outside the packet's bytes. Their widths are those of ovs-fields(7).
// registers() makes the rows of registers.
var metadata = []row{
	{ConjID, "conj_id", "NXM_NX_CONJ_ID", at{offConjID, 4, 0, 32}, Decimal, readOnly, NeedNothing},
	{Metadata, "metadata", "OXM_OF_METADATA", at{offMetadata, 8, 0, 64}, Hex, masked, NeedNothing},
	{InPort, "in_port in_port_oxm", "NXM_OF_IN_PORT OXM_OF_IN_PORT", at{offInPort, 4, 0, 32}, PortNumber, 0, NeedNothing},
	{PktMark, "pkt_mark", "NXM_NX_PKT_MARK", at{offPktMark, 4, 0, 32}, Hex, masked, NeedNothing},
	{CTState, "ct_state", "NXM_NX_CT_STATE", at{offCTState, 4, 0, 32}, CTStateBits, masked | readOnly, NeedNothing},
	{CTZone, "ct_zone", "NXM_NX_CT_ZONE", at{offCTZone, 2, 0, 16}, Hex, readOnly, NeedNothing},
	{CTMark, "ct_mark", "NXM_NX_CT_MARK", at{offCTMark, 4, 0, 32}, Hex, masked, NeedNothing},
	{CTLabel, "ct_label", "NXM_NX_CT_LABEL", at{offCTLabel, 16, 0, 128}, Hex, masked, NeedNothing},
	{CTNwProto, "ct_nw_proto", "NXM_NX_CT_NW_PROTO", at{offCTNwProto, 1, 0, 8}, Decimal, readOnly, NeedCT},
	{CTNwSrc, "ct_nw_src", "NXM_NX_CT_NW_SRC", at{offCTNwSrc, 4, 0, 32}, IPv4Address, masked | readOnly, NeedCT4},
	{CTNwDst, "ct_nw_dst", "NXM_NX_CT_NW_DST", at{offCTNwDst, 4, 0, 32}, IPv4Address, masked | readOnly, NeedCT4},
	{CTIPv6Src, "ct_ipv6_src", "NXM_NX_CT_IPV6_SRC", at{offCTSrc6, 16, 0, 128}, IPv6Address, masked | readOnly, NeedCT6},
	{CTIPv6Dst, "ct_ipv6_dst", "NXM_NX_CT_IPV6_DST", at{offCTDst6, 16, 0, 128}, IPv6Address, masked | readOnly, NeedCT6},
	{CTTpSrc, "ct_tp_src", "NXM_NX_CT_TP_SRC", at{offCTTpSrc, 2, 0, 16}, Decimal, masked | readOnly, NeedCTPorts},
	{CTTpDst, "ct_tp_dst", "NXM_NX_CT_TP_DST", at{offCTTpDst, 2, 0, 16}, Decimal, masked | readOnly, NeedCTPorts},
	{TunID, "tun_id tunnel_id", "NXM_NX_TUN_ID OXM_OF_TUNNEL_ID", at{offTunID, 8, 0, 64}, Hex, masked, NeedNothing},
	{TunSrc, "tun_src", "NXM_NX_TUN_IPV4_SRC", at{offTunSrc, 4, 0, 32}, IPv4Address, masked, NeedNothing},
	{TunDst, "tun_dst", "NXM_NX_TUN_IPV4_DST", at{offTunDst, 4, 0, 32}, IPv4Address, masked, NeedNothing},
	{TunIPv6Src, "tun_ipv6_src", "NXM_NX_TUN_IPV6_SRC", at{offTunSrc6, 16, 0, 128}, IPv6Address, masked, NeedNothing},
	{TunIPv6Dst, "tun_ipv6_dst", "NXM_NX_TUN_IPV6_DST", at{offTunDst6, 16, 0, 128}, IPv6Address, masked, NeedNothing},
	{TunFlags, "tun_flags", "NXM_NX_TUN_FLAGS", at{offTunFlags, 1, 0, 1}, TunnelFlagBits, masked, NeedNothing},
	{TunTTL, "tun_ttl", "", at{offTunTTL, 1, 0, 8}, Decimal, readOnly, NeedNothing},
	{TunTOS, "tun_tos", "", at{offTunTOS, 1, 0, 8}, Decimal, readOnly, NeedNothing},
	{TunPresent, "tun_metadata_present", "", at{offTunPresent, 1, 0, 8}, Hex, readOnly, NeedNothing},
}

// headers are the fields of the packet itself.
var headers = []row{
	{EthSrc, "eth_src dl_src", "NXM_OF_ETH_SRC OXM_OF_ETH_SRC", at{offEthSrc, 6, 0, 48}, MACAddress, masked, NeedNothing},
	{EthDst, "eth_dst dl_dst", "NXM_OF_ETH_DST OXM_OF_ETH_DST", at{offEthDst, 6, 0, 48}, MACAddress, masked, NeedNothing},
	{EthType, "eth_type dl_type", "NXM_OF_ETH_TYPE OXM_OF_ETH_TYPE", at{offEthType, 2, 0, 16}, Hex, readOnly, NeedNothing},
	{VlanTCI, "vlan_tci", "NXM_OF_VLAN_TCI", at{offVlanTCI, 2, 0, 16}, Hex, masked, NeedNothing},
	{VlanVID, "vlan_vid", "OXM_OF_VLAN_VID", at{offVlanTCI, 2, 0, 12}, Decimal, masked, NeedNothing},
	{VlanPCP, "vlan_pcp dl_vlan_pcp", "OXM_OF_VLAN_PCP", at{offVlanTCI, 2, 13, 3}, Decimal, 0, NeedVLAN},
	{IPSrc, "ip_src nw_src", "NXM_OF_IP_SRC OXM_OF_IPV4_SRC", at{offNwSrc, 4, 0, 32}, IPv4Address, masked, NeedIPv4},
	{IPDst, "ip_dst nw_dst", "NXM_OF_IP_DST OXM_OF_IPV4_DST", at{offNwDst, 4, 0, 32}, IPv4Address, masked, NeedIPv4},
	{IPv6Src, "ipv6_src", "NXM_NX_IPV6_SRC OXM_OF_IPV6_SRC", at{offIPv6Src, 16, 0, 128}, IPv6Address, masked, NeedIPv6},
	{IPv6Dst, "ipv6_dst", "NXM_NX_IPV6_DST OXM_OF_IPV6_DST", at{offIPv6Dst, 16, 0, 128}, IPv6Address, masked, NeedIPv6},
	{IPv6Label, "ipv6_label", "NXM_NX_IPV6_LABEL OXM_OF_IPV6_FLABEL", at{offIPv6Label, 4, 0, 20}, Hex, masked, NeedIPv6},
	{IPProto, "nw_proto ip_proto", "NXM_OF_IP_PROTO OXM_OF_IP_PROTO", at{offNwProto, 1, 0, 8}, Decimal, readOnly, NeedIP},
	{IPTOS, "nw_tos", "NXM_OF_IP_TOS", at{offNwTOS, 1, 0, 8}, Decimal, 0, NeedIP},
	{IPDSCP, "ip_dscp", "OXM_OF_IP_DSCP", at{offNwTOS, 1, 2, 6}, Decimal, 0, NeedIP},
	{IPECN, "nw_ecn ip_ecn", "NXM_NX_IP_ECN OXM_OF_IP_ECN", at{offNwTOS, 1, 0, 2}, Decimal, 0, NeedIP},
	{IPTTL, "nw_ttl", "NXM_NX_IP_TTL", at{offNwTTL, 1, 0, 8}, Decimal, 0, NeedIP},
	{IPFrag, "ip_frag nw_frag", "NXM_NX_IP_FRAG", at{offNwFrag, 1, 0, 2}, FragmentBits, masked | readOnly, NeedIP},
	{ArpOp, "arp_op", "NXM_OF_ARP_OP OXM_OF_ARP_OP", at{offArpOp, 2, 0, 16}, Decimal, 0, NeedARP},
	{ArpSPA, "arp_spa", "NXM_OF_ARP_SPA OXM_OF_ARP_SPA", at{offNwSrc, 4, 0, 32}, IPv4Address, masked, NeedARP},
	{ArpTPA, "arp_tpa", "NXM_OF_ARP_TPA OXM_OF_ARP_TPA", at{offNwDst, 4, 0, 32}, IPv4Address, masked, NeedARP},
	{ArpSHA, "arp_sha", "NXM_NX_ARP_SHA OXM_OF_ARP_SHA", at{offArpSHA, 6, 0, 48}, MACAddress, masked, NeedARP},
	{ArpTHA, "arp_tha", "NXM_NX_ARP_THA OXM_OF_ARP_THA", at{offArpTHA, 6, 0, 48}, MACAddress, masked, NeedARP},
	{TCPSrc, "tcp_src", "NXM_OF_TCP_SRC OXM_OF_TCP_SRC", at{offTpSrc, 2, 0, 16}, Decimal, masked, NeedTCP},
	{TCPDst, "tcp_dst", "NXM_OF_TCP_DST OXM_OF_TCP_DST", at{offTpDst, 2, 0, 16}, Decimal, masked, NeedTCP},
	{TCPFlags, "tcp_flags", "NXM_NX_TCP_FLAGS OXM_OF_TCP_FLAGS", at{offTCPFlags, 2, 0, 12}, TCPFlagBits, masked | readOnly, NeedTCP},
	{UDPSrc, "udp_src", "NXM_OF_UDP_SRC OXM_OF_UDP_SRC", at{offTpSrc, 2, 0, 16}, Decimal, masked, NeedUDP},
	{UDPDst, "udp_dst", "NXM_OF_UDP_DST OXM_OF_UDP_DST", at{offTpDst, 2, 0, 16}, Decimal, masked, NeedUDP},
	{SCTPSrc, "sctp_src", "OXM_OF_SCTP_SRC", at{offTpSrc, 2, 0, 16}, Decimal, masked, NeedSCTP},
	{SCTPDst, "sctp_dst", "OXM_OF_SCTP_DST", at{offTpDst, 2, 0, 16}, Decimal, masked, NeedSCTP},
	{ICMPType, "icmp_type", "NXM_OF_ICMP_TYPE OXM_OF_ICMPV4_TYPE", at{offTpSrc + 1, 1, 0, 8}, Decimal, 0, NeedICMP},
	{ICMPCode, "icmp_code", "NXM_OF_ICMP_CODE OXM_OF_ICMPV4_CODE", at{offTpDst + 1, 1, 0, 8}, Decimal, 0, NeedICMP},
	{ICMPv6Type, "icmpv6_type", "NXM_NX_ICMPV6_TYPE OXM_OF_ICMPV6_TYPE", at{offTpSrc + 1, 1, 0, 8}, Decimal, 0, NeedICMPv6},
	{ICMPv6Code, "icmpv6_code", "NXM_NX_ICMPV6_CODE OXM_OF_ICMPV6_CODE", at{offTpDst + 1, 1, 0, 8}, Decimal, 0, NeedICMPv6},
	{NDTarget, "nd_target", "NXM_NX_ND_TARGET OXM_OF_IPV6_ND_TARGET", at{offNDTarget, 16, 0, 128}, IPv6Address, masked, NeedND},
	{NDSLL, "nd_sll", "NXM_NX_ND_SLL OXM_OF_IPV6_ND_SLL", at{offArpSHA, 6, 0, 48}, MACAddress, masked, NeedNDSolicit},
	{NDTLL, "nd_tll", "NXM_NX_ND_TLL OXM_OF_IPV6_ND_TLL", at{offArpTHA, 6, 0, 48}, MACAddress, masked, NeedNDAdvert},
}

// registers makes the rows of reg0 to reg15 and of their unions.
func registers() (rows []row) {
	add := func(first FieldID, n, size int, name, head string) {
		for i := range n {
			d := strconv.Itoa(i)
			rows = append(rows, row{first + FieldID(i), name + d, head + d,
				at{offReg + size*i, size, 0, 8 * size}, Hex, masked, NeedNothing})
		}
	}
	add(Reg0, 16, 4, "reg", "NXM_NX_REG")
	add(XReg0, 8, 8, "xreg", "OXM_OF_PKT_REG")
	add(XXReg0, 4, 16, "xxreg", "NXM_NX_XXREG")
	return rows
}

// tunnelOptions makes the rows of Geneve options. Open vSwitch has 64 options of up to 124 bytes;
// a switch holds 256 bytes of them.
func tunnelOptions() (rows []row) {
	for i := range TunMetadataFields {
		d := strconv.Itoa(i)
		rows = append(rows, row{TunMetadata0 + FieldID(i), "tun_metadata" + d, "NXM_NX_TUN_METADATA" + d,
			at{offTunData + MaxTunMetadata*i, MaxTunMetadata, 0, 8 * MaxTunMetadata}, Hex, masked, NeedNothing})
	}
	return rows
}

var (
	fields     = makeFields()
	fieldNames = makeFieldNames()
)

func makeFields() (t [NumFields]Field) {
	for _, rows := range [][]row{registers(), metadata, tunnelOptions(), headers} {
		for _, r := range rows {
			t[r.id] = r.field()
		}
	}
	return t
}

// field is the Field of a row.
func (r *row) field() Field {
	name, alias, _ := strings.Cut(r.names, " ")
	nxm, oxm, _ := strings.Cut(r.heads, " ")
	return Field{
		ID: r.id, Name: name, Alias: alias, NXM: nxm, OXM: oxm,
		Off: r.place.off, Size: r.place.size, Lsb: r.place.lsb, Bits: r.place.bits,
		Form: r.form, Maskable: r.traits&masked != 0, ReadOnly: r.traits&readOnly != 0, Need: r.need,
	}
}

func makeFieldNames() map[string]*Field {
	names := make(map[string]*Field)
	for i := range fields {
		f := &fields[i]
		for _, n := range []string{f.Name, f.Alias, f.NXM, f.OXM} {
			if n != "" {
				names[n] = f
			}
		}
	}
	return names
}
