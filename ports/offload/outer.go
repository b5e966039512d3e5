package offload

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// outer is a kind of outer headers. Each kind has a program at the underlay, and a part of the
// programs that add outer headers.
type outer struct{ over6, gre bool }

// numOuters is the number of kinds.
const numOuters = 4

// outers is all kinds.
var outers = [numOuters]outer{{}, {gre: true}, {over6: true}, {over6: true, gre: true}}

// outerOf is the index in outers of a kind of tunnel over IPv4 or IPv6.
func outerOf(kind tunnel.Kind, over6 bool) int {
	for i, o := range outers {
		if o.over6 == over6 && o.gre == (kind == tunnel.KindGRE) {
			return i
		}
	}
	panic("a kind of outer headers is missing")
}

// parts is the parts that mark the kind in an offload entry.
func (o outer) parts() int32 {
	var parts ports.OffloadParts
	if o.gre {
		parts |= ports.OffloadGRE
	}
	if o.over6 {
		parts |= ports.OffloadOver6
	}
	return int32(parts)
}

// kindParts is the parts that distinguish the kinds.
const kindParts = int32(ports.OffloadGRE | ports.OffloadOver6)

// etherType is the type in the outer Ethernet header.
func (o outer) etherType() int32 {
	if o.over6 {
		return network(packet.EtherTypeIPv6)
	}
	return network(packet.EtherTypeIPv4)
}

// ipLen is the length of the outer IP header, and so the offset of UDP or GRE after it.
func (o outer) ipLen() int16 {
	if o.over6 {
		return packet.IPv6Len
	}
	return packet.IPv4Len
}

// head is the offset of the tunnel's header after the outer Ethernet header.
func (o outer) head() int16 {
	if o.gre {
		return o.ipLen()
	}
	return o.ipLen() + packet.UDPLen
}

// len is the length of all headers before the inner frame. Both Ethernet headers have the same
// length. So len is also the distance from the outer Ethernet header's end to the inner packet.
func (o outer) len() int32 { return l3 + int32(o.head()) + tunnel.HeaderLen }

// addrs is the offset of both addresses after the outer Ethernet header, up to ipLen.
func (o outer) addrs() int16 {
	if o.over6 {
		return 8
	}
	return 12
}
