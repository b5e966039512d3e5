package tables

import (
	"net/netip"

	"github.com/antrail/antrail/flow"
)

// What differs between IPv4 and IPv6: field names, zones and a few addresses.
// Entries of both families come from the same functions, which take a Family.

// Addresses that no machine has: the virtual MAC of all remote gateways, the
// source of connections that hairpin through the gateway, and what the Node's
// own rules translate NodePort connections to.
var (
	GlobalVirtualMAC      = [6]byte{0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	VirtualServiceIP      = netip.MustParseAddr("169.254.0.253")
	VirtualServiceIPv6    = netip.MustParseAddr("fc01::aabb:ccdd:eeff")
	VirtualNodePortIP     = netip.MustParseAddr("169.254.0.252")
	VirtualNodePortIPv6   = netip.MustParseAddr("fc01::aabb:ccdd:eefe")
	ipv6LinkLocal         = netip.MustParsePrefix("fe80::/10")
	ipv6Multicast         = netip.MustParsePrefix("ff00::/8")
	noLinkLayerAddress    [6]byte // of an ND message without the option
	linkLocalPrefix64     = [8]byte{0xfe, 0x80}
	interfaceIDPadding    = [2]byte{0xff, 0xfe}
	universalLocalBitMask = byte(2)
)

func familyOf(a netip.Addr) Family {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// pick is a or b as the family is IPv4 or IPv6.
func pick[T any](f Family, a, b T) T {
	if f == IPv4 {
		return a
	}
	return b
}

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

// ip asks for a packet of the family.
func (f Family) ip() term { return exact(flow.EthType, f.etherType()) }

// proto asks for a packet of the family and an IP protocol.
func (f Family) proto(proto uint8) term {
	return func(m *flow.Match) {
		f.ip()(m)
		m.AddExact(flow.IPProto, flow.Value{Lo: uint64(proto)})
	}
}

func src(a netip.Addr) term { return srcIn(host(a)) }
func dst(a netip.Addr) term { return dstIn(host(a)) }

// srcIn, dstIn and ctSrcIn ask for an IP packet with an address in a prefix.
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

// tunDst asks for, and setTunDst writes, the far end of the tunnel.
func tunDst(a netip.Addr) term {
	return func(m *flow.Match) { m.AddExact(familyOf(a).tunDstField(), flow.ValueOfAddr(a)) }
}

func setTunDst(a netip.Addr) flow.Action {
	return flow.SetField{
		Field: familyOf(a).tunDstField(), Value: flow.ValueOfAddr(a), Mask: flow.Ones(a.BitLen()),
	}
}

// Ports of a transport protocol.
func srcPortField(proto uint8) flow.FieldID {
	return map[uint8]flow.FieldID{protoTCP: flow.TCPSrc, protoUDP: flow.UDPSrc, protoSCTP: flow.SCTPSrc}[proto]
}

func dstPortField(proto uint8) flow.FieldID {
	return map[uint8]flow.FieldID{protoTCP: flow.TCPDst, protoUDP: flow.UDPDst, protoSCTP: flow.SCTPDst}[proto]
}

// linkLocalOf is the link-local address that a MAC gives (RFC 4291,
// appendix A).
func linkLocalOf(mac [6]byte) netip.Addr {
	var a [16]byte
	copy(a[:], linkLocalPrefix64[:])
	copy(a[8:], mac[:3])
	copy(a[11:], interfaceIDPadding[:])
	copy(a[13:], mac[3:])
	a[8] ^= universalLocalBitMask
	return netip.AddrFrom16(a)
}

// ours are the addresses of the pipeline's families, each once.
func (p *Pipeline) ours(addrs []netip.Addr) (ours []netip.Addr) {
	for _, a := range addrs {
		if p.hasFamily(familyOf(a)) {
			ours = append(ours, a)
		}
	}
	return ours
}

// oursIn are the prefixes of the pipeline's families.
func (p *Pipeline) oursIn(prefixes []netip.Prefix) (ours []netip.Prefix) {
	for _, x := range prefixes {
		if p.hasFamily(familyOf(x.Addr())) {
			ours = append(ours, x.Masked())
		}
	}
	return ours
}

// gatewayIP is the gateway's address in a family; not valid when it has none.
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
