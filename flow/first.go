package flow

import "github.com/antrail/antrail/packet"

// FirstPort is the client port of a packet whose description names none.
const FirstPort = 40000

// neighborTTL is the hop limit of neighbour discovery: who gets less knows that a router
// has passed the packet on (RFC 4861, section 7.1).
const neighborTTL = 255

// AssumeFirst fills in what a packet that begins a connection has, where its description
// does not say: TTL 64, client port 40000, SYN, an echo request. A TTL or port of 0, or
// TCP without any flag, is never meant. Neighbour discovery gets its hop limit of 255.
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

// isNeighbor says whether a description is of a message of neighbour discovery (RFC 4861,
// section 4).
func isNeighbor(m *Match) bool {
	proto, _ := m.Get(IPProto)
	typ, mask := m.Get(ICMPv6Type)
	return proto.Lo == packet.ProtoICMPv6 && !mask.IsZero() && typ.Lo >= packet.ICMPv6RouterSolicit && typ.Lo <= packet.ICMPv6Redirect
}
