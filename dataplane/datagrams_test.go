package dataplane_test

import (
	"slices"

	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
)

// datagrams is one large packet of every protocol, by name.
func datagrams() map[string][]byte {
	o := packettest.Options{Src: packettest.Addr("10.0.0.1"), Dst: packettest.Addr("10.96.0.1"), Payload: make([]byte, 4000)}
	for i := range o.Payload {
		o.Payload[i] = byte(i * i >> 5)
	}
	o6 := o
	o6.Src, o6.Dst = packettest.Addr("fd00::1"), packettest.Addr("fd00:96::1")
	options := o
	options.IPOptions = []byte{7, 3, 4, 0}
	return map[string][]byte{
		"udp": packettest.UDP4(o), "tcp": packettest.TCP4(o), "sctp": packettest.SCTP4(sctp(o)), "icmp": packettest.ICMPEcho4(o),
		"udp6": packettest.UDP6(o6), "tcp6": packettest.TCP6(o6), "sctp6": packettest.SCTP6(sctp(o6)), "icmp6": packettest.ICMPEcho6(o6),
		"udp, options": packettest.UDP4(options), "udp, no checksum": withoutChecksum(packettest.UDP4(o)),
		"udp, VLAN tag": tagged(packettest.UDP4(o)), "udp6, VLAN tag": tagged(packettest.UDP6(o6)),
		"udp6, hop-by-hop":                       extended(packettest.UDP6(o6), packet.ProtoHopByHop),
		"udp6, destination options":              extended(packettest.UDP6(o6), packet.ProtoDestOpts),
		"icmp6, hop-by-hop, destination options": extended(extended(packettest.ICMPEcho6(o6), packet.ProtoDestOpts), packet.ProtoHopByHop),
	}
}

// sctp makes the payload an INIT chunk with a long parameter.
func sctp(o packettest.Options) packettest.Options {
	n := len(o.Payload)
	chunk := slices.Concat([]byte{packet.SCTPInit, 0, byte(n >> 8), byte(n)}, make([]byte, 16), []byte{0x80, 1, byte((n - 20) >> 8), byte(n - 20)})
	o.Payload = append(chunk, o.Payload[len(chunk):]...)
	return o
}

func withoutChecksum(b []byte) []byte {
	l := packet.ParseLayers(b)
	packet.UDP(b[l.L4:]).SetChecksum(0)
	return b
}

// tagged puts a VLAN tag into a frame.
func tagged(b []byte) []byte {
	const addresses = 12
	return slices.Concat(b[:addresses], []byte{0x81, 0, 0x20, 5}, b[addresses:])
}

// extended puts an extension header in front of what follows an untagged frame's
// IPv6 header: of eight bytes, with a Router Alert (RFC 2711) and padding.
func extended(b []byte, header byte) []byte {
	const l4 = packet.EthernetLen + packet.IPv6Len
	h := packet.IPv6(b[packet.EthernetLen:])
	out := slices.Concat(b[:l4], []byte{h.NextHeader(), 0, 5, 2, 0, 0, 1, 0}, b[l4:])
	out[packet.EthernetLen+6] = header
	packet.IPv6(out[packet.EthernetLen:]).SetPayloadLen(h.PayloadLen() + 8)
	return out
}
