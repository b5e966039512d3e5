package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables/layout"
)

// The differences between IPv4 and IPv6: field names, zones and a few addresses. The same
// functions make entries of both families and take a Family.

// Addresses that no machine has.
//
// - GlobalVirtualMAC: the MAC address of all remote gateways.
// - VirtualServiceIP: the source of connections that hairpin through the gateway.
// - VirtualNodePortIP: the destination to which the Node's own rules translate NodePort connections.
// - VirtualReplyIP: the next hop of the Node's rules for answers to Pods of other Nodes that came for an Egress.
var (
	GlobalVirtualMAC    = [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	VirtualServiceIP    = netip.MustParseAddr("169.254.0.253")
	VirtualServiceIPv6  = netip.MustParseAddr("fc01::aabb:ccdd:eeff")
	VirtualNodePortIP   = netip.MustParseAddr("169.254.0.252")
	VirtualNodePortIPv6 = netip.MustParseAddr("fc01::aabb:ccdd:eefe")
	VirtualReplyIP      = netip.MustParseAddr("169.254.0.251")
	VirtualReplyIPv6    = netip.MustParseAddr("fc01::aabb:ccdd:eefd")
)

// Ranges of IPv6 (RFC 4291, section 2.4).
var (
	ipv6LinkLocal = netip.MustParsePrefix("fe80::/10")
	ipv6Multicast = netip.MustParsePrefix("ff00::/8")
)

func familyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// pick is a for IPv4, b for IPv6.
func pick[T any](f Family, a, b T) T {
	if f == IPv4 {
		return a
	}
	return b
}

// Zones and virtual addresses of a family.
func (f Family) zone() uint16     { return pick[uint16](f, CtZone, CtZoneV6) }
func (f Family) snatZone() uint16 { return pick[uint16](f, SNATCtZone, SNATCtZoneV6) }

func (f Family) virtualServiceIP() netip.Addr {
	return pick(f, VirtualServiceIP, VirtualServiceIPv6)
}

func (f Family) virtualNodePortIP() netip.Addr {
	return pick(f, VirtualNodePortIP, VirtualNodePortIPv6)
}

// The fields of a family.
func (f Family) srcField() flow.FieldID    { return pick(f, flow.IPSrc, flow.IPv6Src) }
func (f Family) dstField() flow.FieldID    { return pick(f, flow.IPDst, flow.IPv6Dst) }
func (f Family) ctSrcField() flow.FieldID  { return pick(f, flow.CTNwSrc, flow.CTIPv6Src) }
func (f Family) tunDstField() flow.FieldID { return pick(f, flow.TunDst, flow.TunIPv6Dst) }
func (f Family) endpointField() Field      { return pick(f, EndpointIPField, EndpointIP6Field) }

// etherType is the family's EtherType.
func (f Family) etherType() uint64 { return pick[uint64](f, etherTypeIPv4, etherTypeIPv6) }

// ip matches a packet of the family.
func (f Family) ip() term { return layout.Exact(flow.EthType, f.etherType()) }

// proto matches a packet of the family and an IP protocol.
func (f Family) proto(proto uint8) term {
	return func(m *flow.Match) {
		f.ip()(m)
		m.AddExact(flow.IPProto, flow.Value{Lo: uint64(proto)})
	}
}

func src(a netip.Addr) term { return srcIn(host(a)) }
func dst(a netip.Addr) term { return dstIn(host(a)) }

// srcIn, dstIn and ctSrcIn match an IP packet with an address in a prefix.
func srcIn(p netip.Prefix) term   { return within(p, Family.srcField) }
func dstIn(p netip.Prefix) term   { return within(p, Family.dstField) }
func ctSrcIn(p netip.Prefix) term { return within(p, Family.ctSrcField) }

func within(p netip.Prefix, field func(Family) flow.FieldID) term {
	f := familyOf(p.Addr())
	return func(m *flow.Match) {
		f.ip()(m)
		m.Add(field(f), flow.ValueOfAddr(p.Addr()), prefixMask(p))
	}
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func prefixMask(p netip.Prefix) flow.Value {
	low := p.Addr().BitLen() - p.Bits()
	return flow.Ones(p.Bits()).Shl(low)
}

// tunDst matches the far end of the tunnel, setTunDst writes it.
func tunDst(a netip.Addr) term {
	return func(m *flow.Match) { m.AddExact(familyOf(a).tunDstField(), flow.ValueOfAddr(a)) }
}

func setTunDst(a netip.Addr) flow.Action {
	return flow.SetField{
		Field: familyOf(a).tunDstField(), Value: flow.ValueOfAddr(a), Mask: flow.Ones(a.BitLen()),
	}
}

// srcPortField and dstPortField are the port fields of a transport protocol, or FieldNone for a
// protocol without ports.
func srcPortField(proto uint8) flow.FieldID {
	switch proto {
	case protoTCP:
		return flow.TCPSrc
	case protoUDP:
		return flow.UDPSrc
	case protoSCTP:
		return flow.SCTPSrc
	}
	return flow.FieldNone
}

func dstPortField(proto uint8) flow.FieldID {
	switch proto {
	case protoTCP:
		return flow.TCPDst
	case protoUDP:
		return flow.UDPDst
	case protoSCTP:
		return flow.SCTPDst
	}
	return flow.FieldNone
}

// linkLocalOf is the link-local address of a MAC address (RFC 4291, appendix A): the MAC with
// ff:fe in the middle and the universal/local bit inverted.
func linkLocalOf(mac [6]byte) netip.Addr {
	return netip.AddrFrom16([16]byte{
		0: 0xfe, 1: 0x80,
		8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5],
	})
}

// addrsInFamilies are the addresses of the pipeline's families.
func (p *Pipeline) addrsInFamilies(addrs []netip.Addr) (ours []netip.Addr) {
	for _, a := range addrs {
		if p.hasFamily(familyOf(a)) {
			ours = append(ours, a)
		}
	}
	return ours
}

// prefixesInFamilies are the prefixes of the pipeline's families.
func (p *Pipeline) prefixesInFamilies(prefixes []netip.Prefix) (ours []netip.Prefix) {
	for _, x := range prefixes {
		if p.hasFamily(familyOf(x.Addr())) {
			ours = append(ours, x.Masked())
		}
	}
	return ours
}

// gatewayIP is the gateway's address in a family, not valid if it has none.
func (p *Pipeline) gatewayIP(f Family) netip.Addr {
	for _, a := range p.c.GatewayIPs {
		if familyOf(a) == f {
			return a
		}
	}
	return netip.Addr{}
}

// each makes entries for every family of the pipeline.
func (p *Pipeline) each(build func(Family) []*flow.Entry) (all []*flow.Entry) {
	for _, f := range p.families {
		all = append(all, build(f)...)
	}
	return all
}
