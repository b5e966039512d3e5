package attack

import (
	"slices"

	"github.com/antrail/antrail/lab"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// to are the options of packets from the attacker to a pod: by the gateway, unless both are on
// one Node. The payload is the marker.
func (s *stage) to(pod string) packettest.Options {
	a, b := s.pod(attacker), s.pod(pod)
	o := packettest.Options{EthSrc: a.mac, EthDst: a.gateway, Src: a.address, Dst: b.address, SrcPort: 40000, Payload: s.marker}
	if a.node == b.node {
		o.EthDst = b.mac
	}
	return o
}

type build = func(packettest.Options) []byte

// udp, tcp and echo make packets of the stage's family.
func (s *stage) udp(o packettest.Options) []byte {
	return lab.Dual[build]{V4: packettest.UDP4, V6: packettest.UDP6}.Of(s.v6)(o)
}

func (s *stage) tcp(o packettest.Options) []byte {
	return lab.Dual[build]{V4: packettest.TCP4, V6: packettest.TCP6}.Of(s.v6)(o)
}

func (s *stage) echo(o packettest.Options) []byte {
	o.ICMPID = 0x5f01
	return lab.Dual[build]{V4: packettest.ICMPEcho4, V6: packettest.ICMPEcho6}.Of(s.v6)(o)
}

// tagged is a frame with tags of VLAN 5 of these types, outermost first.
func tagged(frame []byte, types ...uint16) []byte {
	const addresses, vlan = 12, 5
	var tags []byte
	for _, t := range types {
		tags = append(tags, byte(t>>8), byte(t), 0, vlan)
	}
	return slices.Insert(slices.Clone(frame), addresses, tags...)
}

// Ethernet types of tags (IEEE 802.1Q).
const (
	customerTag = 0x8100
	serviceTag  = 0x88a8
)

// extension is an IPv6 extension header: its number, and its bytes from the second on. Its
// length is a multiple of 8 bytes.
type extension struct {
	number byte
	rest   []byte
}

// extended inserts extension headers behind the IPv6 header. Checksums stay right, because
// they do not cover extension headers.
func extended(frame []byte, all ...extension) []byte {
	const nextHeader = 6
	b := slices.Clone(frame)
	at, carried := packet.EthernetLen+packet.IPv6Len, b[packet.EthernetLen+nextHeader]
	for i := len(all) - 1; i >= 0; i-- {
		b = slices.Insert(b, at, append([]byte{carried}, all[i].rest...)...)
		carried = all[i].number
	}
	b[packet.EthernetLen+nextHeader] = carried
	h := packet.IPv6(b[packet.EthernetLen:])
	h.SetPayloadLen(uint16(len(h) - packet.IPv6Len))
	return b
}

// padding is an extension header without effect: PadN of four bytes.
func padding(number byte) extension {
	return extension{number, []byte{0, 1, 4, 0, 0, 0, 0}}
}

// wayback is a routing header of type 0 (RFC 5095) with one more hop, to an address.
func wayback(to [16]byte) extension {
	return extension{packet.ProtoRouting, append([]byte{2, 0, 1, 0, 0, 0, 0}, to[:]...)}
}
