package flow

import "github.com/antrail/antrail/packet"

// FirstPort is the client port of a packet whose description has none.
const FirstPort = 40000

// neighborTTL is the hop limit of neighbour discovery. With a lower one, a router has forwarded
// the packet (RFC 4861, section 7.1).
const neighborTTL = 255

// AssumeFirst fills in the missing parts of a packet's description, as in a connection's first
// packet: TTL 64, client port 40000, SYN, an echo request. It replaces a TTL or port of 0,
// and TCP without flags, because no description means these. Neighbour discovery gets its hop
// limit of 255.
func AssumeFirst(m *Match) {
	etherType, _ := m.Get(EthType)
	proto, _ := m.Get(IPProto)
	v4, v6 := etherType.Lo == packet.EtherTypeIPv4, etherType.Lo == packet.EtherTypeIPv6
	is := func(p uint8) bool { return (v4 || v6) && proto.Lo == uint64(p) }
	for _, d := range []struct {
		field FieldID
		when  bool
		value uint64
	}{
		{ICMPType, v4 && is(packet.ProtoICMP), packet.ICMPEcho},
		{ICMPv6Type, v6 && is(packet.ProtoICMPv6), packet.ICMPv6Echo},
		{IPTTL, v6 && isNeighbor(m), neighborTTL},
		{IPTTL, v4 || v6, 64},
		{TCPSrc, is(packet.ProtoTCP), FirstPort},
		{UDPSrc, is(packet.ProtoUDP), FirstPort},
		{TCPFlags, is(packet.ProtoTCP), packet.TCPSyn},
	} {
		if _, mask := m.Get(d.field); d.when && mask.IsZero() {
			m.AddExact(d.field, Value{Lo: d.value})
		}
	}
}

// isNeighbor reports whether a description is a message of neighbour discovery (RFC 4861, section
// 4).
func isNeighbor(m *Match) bool {
	proto, _ := m.Get(IPProto)
	typ, mask := m.Get(ICMPv6Type)
	return proto.Lo == packet.ProtoICMPv6 && !mask.IsZero() && typ.Lo >= packet.ICMPv6RouterSolicit && typ.Lo <= packet.ICMPv6Redirect
}
