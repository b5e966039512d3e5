package offload

import (
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/tunnel"
)

// outer is a kind of outer headers. It has a program at the underlay, and a part of the
// programs that put outer headers in front.
type outer struct{ over6, gre bool }

// numOuters is how many kinds there are.
const numOuters = 4

// outers is all kinds.
var outers = [numOuters]outer{{}, {gre: true}, {over6: true}, {over6: true, gre: true}}

// outerOf is the place in outers of a kind of tunnel over IPv4 or IPv6.
func outerOf(kind tunnel.Kind, over6 bool) int {
	for i, o := range outers {
		if o.over6 == over6 && o.gre == (kind == tunnel.KindGRE) {
			return i
		}
	}
	panic("a kind of outer headers is missing")
}

// parts says in an offload entry which kind it is.
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

// kindParts is the parts that tell the kinds apart.
const kindParts = int32(ports.OffloadGRE | ports.OffloadOver6)

// etherType is that of the outer Ethernet header.
func (o outer) etherType() int32 {
	if o.over6 {
		return network(packet.EtherTypeIPv6)
	}
	return network(packet.EtherTypeIPv4)
}

// ipLen is the length of the outer IP header, and so where behind it UDP or GRE begins.
func (o outer) ipLen() int16 {
	if o.over6 {
		return packet.IPv6Len
	}
	return packet.IPv4Len
}

// head is where behind the outer Ethernet header the tunnel's header begins.
func (o outer) head() int16 {
	if o.gre {
		return o.ipLen()
	}
	return o.ipLen() + packet.UDPLen
}

// len is the length of all headers in front of the inner frame. Both Ethernet headers are equally
// long. So len also is the distance from the outer Ethernet header's end to the inner packet.
func (o outer) len() int32 { return l3 + int32(o.head()) + tunnel.HeaderLen }

// addrs is where behind the outer Ethernet header both addresses are, up to ipLen.
func (o outer) addrs() int16 {
	if o.over6 {
		return 8
	}
	return 12
}
